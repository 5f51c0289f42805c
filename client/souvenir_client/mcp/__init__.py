"""The bridge between an MCP client that speaks over stdio and a running service.

It knows JSON-RPC as far as it has to, and nothing of what is said: tools are the service's.
"""
