-- ARGV: bucket, amount, rate, burst, request. Answers with the seconds to wait.
local amount, rate, burst = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local row = call('HGET', tag .. ':buckets', ARGV[1])
local tokens, at, request = unpack(row and unpacked(row) or {burst, now, ''})
if request == ARGV[5] then
  return '0' -- taken before, and only the reply was lost
end
tokens = math.min(burst, tokens + (now - at) / 1000000 * rate)
if tokens < amount then
  return string.format('%.17g', (amount - tokens) / rate)
end
call('HSET', tag .. ':buckets', ARGV[1], pack({tokens - amount, now, ARGV[5]}))
return '0'
