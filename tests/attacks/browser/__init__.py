"""A hostile person, run or node that tries to reach people through their browser."""
