import { tool } from "ai";
import { z } from "zod";

const Station = z.string().min(2).describe("Name of the station");

export const searchTrains = tool({
  description: "Finds trains between two stations.",
  inputSchema: z.object({
    from: Station,
    to: Station,
    // The day of departure.
    date: z.iso.date().optional(),
    seats: z.number().int().default(1),
  }),
  execute: async ({ from, to, seats }) => [{ train: "IC 17", from, to, free: seats < 5 }],
});

const bookingSchema = z.object({
  train: z.string(),
  class: z.enum(["first", "second"]),
  travellers: z.array(z.object({ name: z.string(), age: z.number() })),
});

export const tools = {
  searchTrains,
  bookTrain: tool({
    description: `Books a train.
      Only book after the user has confirmed the price.`,
    parameters: bookingSchema,
    async execute({ train }) {
      const match = /^(IC|RE) ["'\d]+$/.exec(train);
      return match ? { booked: train } : { error: "unknown train" };
    },
  }),
};

/** Definition in the format of the Responses API. */
export const cancelDefinition = {
  type: "function" as const,
  name: "cancel_booking",
  description: "Cancels a booking.",
  parameters: {
    type: "object",
    properties: { booking: { type: "string" }, reason: { type: ["string", "null"] } },
    required: ["booking"],
    additionalProperties: false,
  },
};
