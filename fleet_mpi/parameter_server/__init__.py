"""Who keeps and serves parameters: flat layouts, tables with their update recipes, the client and the server."""
