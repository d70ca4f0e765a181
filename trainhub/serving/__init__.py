"""The hub's web server: uvicorn with limits on slow clients, named proxies, and a check of the Host
header."""
