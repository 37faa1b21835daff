-- What is left of a pool's pause (-1: none, false: it lasts until resumed), and its reason.
local function pause_of(pool, about)
  if not is_paused(about) then
    return -1, false
  end
  local until_ = tonumber(about[PAUSED_UNTIL])
  return until_ < math.huge and until_ - now, call('HGET', pool_key(pool, 'about'), 'pause_reason')
end
