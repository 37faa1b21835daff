"""SQL of store/sql/documents.py."""

GET = """
SELECT body, version FROM sprat.document
WHERE kind = $1 AND name = $2 AND expires_at > coalesce($3::float8, sprat.clock())
"""
PAGE = """
SELECT name, body, version FROM sprat.document
WHERE kind = $1 AND name > $2 AND expires_at > coalesce($3::float8, sprat.clock())
ORDER BY name LIMIT $4
"""
PUT = """
INSERT INTO sprat.document VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body, version = excluded.version,
    expires_at = excluded.expires_at
"""
DELETE = "DELETE FROM sprat.document WHERE kind = $1 AND name = $2"
FORGET = """
DELETE FROM sprat.document WHERE (kind, name) IN (
    SELECT kind, name FROM sprat.document WHERE expires_at <= $1 AND expires_at < 9e99
    LIMIT 100 FOR UPDATE SKIP LOCKED)
"""
ADD_BUCKET = "INSERT INTO sprat.bucket VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING"
BUCKET = "SELECT tokens, at FROM sprat.bucket WHERE name = $1 FOR NO KEY UPDATE"
FILL = "UPDATE sprat.bucket SET tokens = $2, at = $3 WHERE name = $1"
