"""The MCP bridge: `souvenir mcp` connects an MCP client on stdio to the `/mcp` endpoint of a service.

Both sides use the transports of the official SDK (the extra `mcp`). The tools are those of the service.
"""
