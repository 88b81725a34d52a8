"""The Faust shell of an agent: app, stateful and stateless agents, ticks, tables, watchdog."""
