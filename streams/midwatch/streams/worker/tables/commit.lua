-- One partition's batch: outgoing records, changed state and the input offset, all or nothing.
--   KEYS  offset, outbox, then one hash per changed key of the state
--   ARGV  expected offset, new offset, nonce,
--         per hash: number of fields set, number deleted, field, value, ..., deleted field, ...
--         then to the end: entry id, packed record, ...
-- Answers OK; DUP if this same write is already there (its answer was lost);
-- the error FENCED if another worker has written since. Runs on Redis 6.2 and newer.
local current = redis.call('GET', KEYS[1])
local offset = current and string.match(current, '^%-?%d+') or '-1'
if offset ~= ARGV[1] then
  if current == ARGV[2] .. ' ' .. ARGV[3] then
    return 'DUP'
  end
  return redis.error_reply('FENCED at ' .. offset .. ', expected ' .. ARGV[1])
end
if tonumber(ARGV[2]) <= tonumber(offset) then
  return redis.error_reply('BACKWARDS from ' .. offset .. ' to ' .. ARGV[2])
end

-- unpack() takes a bounded number of values from Lua's stack
local function in_slices(command, key, first, last)
  for from = first, last, 1000 do
    redis.call(command, key, unpack(ARGV, from, math.min(from + 999, last)))
  end
end

local hashes = #KEYS - 2
local at = 4
local spans = {}
for i = 1, hashes do
  local set, deleted = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  spans[i] = {at + 2, at + 1 + 2 * set, at + 1 + 2 * set + deleted}
  at = at + 2 + 2 * set + deleted
end
-- The outbox goes first: only it can refuse (an id below its last one), and then nothing is written.
while ARGV[at] do
  redis.call('XADD', KEYS[2], ARGV[at], 's', ARGV[at + 1])
  at = at + 2
end
for i = 1, hashes do
  local first, fields_end, deleted_end = spans[i][1], spans[i][2], spans[i][3]
  in_slices('HSET', KEYS[i + 2], first, fields_end)
  in_slices('HDEL', KEYS[i + 2], fields_end + 1, deleted_end)
end
redis.call('SET', KEYS[1], ARGV[2] .. ' ' .. ARGV[3])
return 'OK'
