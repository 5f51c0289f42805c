"""The MCP server: the service's memory as tools, resources and prompts of the Model Context Protocol."""
