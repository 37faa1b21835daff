-- ARGV: pool. Answers with its settings, their version, and the pause that is left (-1: none,
-- nil: until resumed).
local about = about_pool(ARGV[1])
local left = -1
if is_paused(about) then
  local until_ = tonumber(about[PAUSED_UNTIL])
  left = until_ < math.huge and until_ - now
end
return {about[SETTINGS], tonumber(about[VERSION] or 0), left}
