package example.library;

import dev.langchain4j.service.SystemMessage;

interface Assistant {
    @SystemMessage("""
        You are the assistant of a town library.
        Answer only questions about books and loans.
        """)
    String chat(String message);
}
