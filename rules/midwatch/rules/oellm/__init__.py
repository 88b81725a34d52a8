"""The monitoring configuration of oellm-autoexp, in all four generations, read as our own rules. Pure.

`composition` follows the Hydra `defaults:` lists, `generation` tells which of the four a file is,
`events` and `monitor` read its keys, `patterns` and `meaning` turn an event into a rule, `reading` puts
it all together. What an event's action asks for is read here too (`actions`); what is done about it is a
policy's business, and policies are not known to this package.
"""
