"""Estimators, which the SDK v1 had before ScriptRunConfig: a script with its environment and distribution."""
