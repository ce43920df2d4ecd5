package example.library;

import org.springframework.ai.chat.model.ToolContext;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.ai.tool.annotation.ToolParam;

class FeeTools {
    @Tool(description = "Returns the open fees of a reader. " + "Only staff may see the fees of other readers.", returnDirect = true)
    double openFees(@ToolParam(description = "Number of the reader's card") String card, @Nullable Boolean details, ToolContext context) {
        return 0;
    }

    @McpTool(name = "pay_fee", description = "Pays a fee.")
    public String pay(@McpToolParam(description = "Amount in EUR", required = true) BigDecimal amount) {
        return "paid";
    }
}
