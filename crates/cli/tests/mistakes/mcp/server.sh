# The server is not started, because nothing runs.
