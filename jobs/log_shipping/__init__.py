"""Ships the lines of runs' logs to log systems outside, by OTLP or Loki's push API."""
