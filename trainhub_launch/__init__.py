"""Floor 0: what a training job is, where it goes and what will run.

Pure values and pure functions, standard library only. The hub and the nodes both import this
package and meet in nothing else.
"""
