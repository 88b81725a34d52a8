"""Messages: decisions, incidents and findings in, messages to people out. Its state is in a Redis table.

The pure part says what is told when and on which channel. `delivery` brings it there, and `channels` holds
one file for each kind of channel.
"""
