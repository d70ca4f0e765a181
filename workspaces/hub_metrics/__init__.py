"""What the hub's own processes measure of themselves: requests, periodic work, tasks, and queues.

Each process keeps its measurements in memory and stores them every few seconds (`publisher`), so that any
web server can show all processes (`/metrics`, and the page System)."""
