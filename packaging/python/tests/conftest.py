"""Settings of the tests of the package. They run with the program that TRIALRUN_PROGRAM names."""

import signal

import pytest

pytest_plugins = ["pytester"]

# A shell starts commands in the background with an ignored SIGINT, which programs started by tests would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def project(tmp_path: "pytest.TempPathFactory", monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts each test in an empty directory, with a home of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CI", "TRIALRUN_STATE"):
        monkeypatch.delenv(name, raising=False)
