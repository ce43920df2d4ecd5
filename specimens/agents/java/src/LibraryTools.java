package example.library;

import dev.langchain4j.agent.tool.P;
import dev.langchain4j.agent.tool.Tool;
import dev.langchain4j.agent.tool.ToolMemoryId;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Tools of the agent. You must not read this as a rule for the agent. */
public class LibraryTools {
    private final Catalogue catalogue;

    public LibraryTools(Catalogue catalogue) {
        this.catalogue = catalogue;
    }

    @Tool("Finds books by the words in their titles.")
    public List<Book> findBooks(@P("Words of the title") String words, @P(value = "Maximum number", required = false) int limit) {
        return catalogue.find(words, limit);
    }

    @Tool(name = "reserve_book", value = {"Reserves a book.", "Never reserve a book twice for the same reader."})
    @Audited
    Reservation reserve(@ToolMemoryId String reader, final java.util.UUID book, Map<String, List<String>> notes) {
        return catalogue.reserve(reader, book, notes);
    }

    @Tool
    public static <T extends Loan> boolean renew(long loan, String[] reasons, Optional<Integer> days) {
        return Loans.renew(loan, reasons, days);
    }

    public void forget(String reader) {
        catalogue.forget(reader);
    }
}
