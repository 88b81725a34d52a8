"""The Faust shell of an agent: apps, stateful and stateless folds, ticks, tables, the watchdog."""
