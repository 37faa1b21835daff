"""SQL of store/sql/documents.py."""

GET = "SELECT body, version FROM document WHERE kind = ? AND name = ? AND expires_at > ?"
PAGE = """
SELECT name, body, version FROM document
WHERE kind = ?1 AND name > ?2 AND expires_at > ?3 ORDER BY name LIMIT ?4
"""
PUT = "INSERT OR REPLACE INTO document VALUES (?, ?, ?, ?, ?)"
DELETE = "DELETE FROM document WHERE kind = ? AND name = ?"
FORGET = "DELETE FROM document WHERE expires_at <= ? AND expires_at < 9e99"
ADD_BUCKET = "INSERT INTO bucket VALUES (?, ?, ?)"
BUCKET = "SELECT tokens, at FROM bucket WHERE name = ?"
FILL = "UPDATE bucket SET tokens = ?2, at = ?3 WHERE name = ?1"
