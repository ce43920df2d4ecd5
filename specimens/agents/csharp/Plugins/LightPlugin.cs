using System.ComponentModel;
using Microsoft.SemanticKernel;

namespace Home;

public sealed class LightPlugin
{
    [KernelFunction("get_lights")]
    [Description("Lists all lights with their states.")]
    public async Task<List<Light>> GetLightsAsync() => await home.Lights();

    [KernelFunction, Description("Switches a light. Never switch on more than ten lights at once.")]
    [return: Description("The light, as it is now")]
    public async Task<Light?> SwitchLightAsync(
        Kernel kernel,
        [Description("Id of the light")] int id,
        [Description("True to switch it on")] bool on,
        string[]? reasons = null,
        CancellationToken cancellation = default)
    {
        return await home.Switch(id, on, reasons, cancellation);
    }

    public void Reset(string reason) => home.Reset(reason);
}
