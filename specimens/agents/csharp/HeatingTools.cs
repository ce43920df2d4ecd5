using System.ComponentModel;
using ModelContextProtocol.Server;

namespace Home;

[McpServerToolType]
public static class HeatingTools
{
    /// <summary>Sets the temperature of a room.</summary>
    [McpServerTool, Description("Sets the temperature of a room, at most 24 degrees.")]
    public static Task<string> SetTemperatureAsync(IHome home, [Description("Name of the room")] string room, decimal degrees)
        => home.Heat(room, degrees);

    [McpServerTool(Name = "boost", Destructive = false)]
    public static string Boost(Dictionary<string, int> minutes, double? until) => "ok";
}
