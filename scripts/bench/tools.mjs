/** Tool descriptions of about the size that MCP servers send, the same on both sides of a case. */
export const toolSpecs = (count) =>
  Array.from({ length: count }, (_, index) => ({
    name: `service_${index % 40}_operation_${index}`,
    description:
      `Operation ${index} of a service: reads a record by its id, filters it and returns the selected fields. `
        .repeat(2),
    parameters: {
      type: "object",
      properties: {
        id: { type: "string", description: "The record." },
        fields: { type: "array", items: { type: "string" }, description: "Fields to return; all of them when absent." },
        limit: { type: "integer", minimum: 1, maximum: 1000 },
        filter: {
          type: "object",
          properties: { key: { type: "string" }, value: { type: "string" }, exact: { type: "boolean" } },
          required: ["key", "value"]
        }
      },
      required: ["id"],
      additionalProperties: false
    }
  }))
