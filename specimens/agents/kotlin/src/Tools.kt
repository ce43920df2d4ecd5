package example.garden

import ai.koog.agents.core.tools.annotations.LLMDescription
import ai.koog.agents.core.tools.annotations.Tool
import ai.koog.agents.core.tools.reflect.ToolSet

@LLMDescription("Tools for a garden")
class GardenTools(private val garden: Garden) : ToolSet {
    @Tool
    @LLMDescription("Waters a bed. Do not water a bed twice a day.")
    suspend fun waterBed(
        @LLMDescription("Name of the bed") bed: String,
        @LLMDescription("Litres of water") litres: Double = 5.0,
    ): String = garden.water(bed, litres)

    @Tool
    fun listPlants(beds: List<String>, season: Season?, filter: (Plant) -> Boolean = { true }) = garden.plants(beds, season)

    fun reset() = garden.reset()
}

val prompt = """
    You are a gardener.
    Never recommend pesticides.
"""
