-- ARGV: pool. Answers with its settings, their version, and its pause (pausing.lua).
local about = about_pool(ARGV[1])
local left, reason = pause_of(ARGV[1], about)
return {about[SETTINGS], tonumber(about[VERSION] or 0), left, reason}
