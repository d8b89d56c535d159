"""What stands around detection on Spark: formats for brokers, messages as rows, sinks, jobs."""
