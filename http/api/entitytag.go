package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// WeakTag returns the entity tag of a response that is made of the pieces (RFC 9110, 8.8.3). It is weak, because the response
// may differ: it may be compressed, or contain the time.
func WeakTag(pieces ...[]byte) string {
	hash := sha256.New()
	for _, p := range pieces {
		hash.Write(p)
	}
	return `W/"` + hex.EncodeToString(hash.Sum(nil)[:8]) + `"`
}

// NotModified sets the entity tag of a response, which clients must revalidate each time. If the client already has that
// response, it sends status 304 and returns true.
func NotModified(w http.ResponseWriter, r *http.Request, tag string) bool {
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", tag)
	if !knowsTag(r.Header.Values("If-None-Match"), tag) {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

// knowsTag reports whether If-None-Match lists a tag (RFC 9110, 13.1.2).
func knowsTag(ifNoneMatch []string, tag string) bool {
	for given := range strings.SplitSeq(strings.Join(ifNoneMatch, ","), ",") {
		given = strings.TrimSpace(given)
		if given == "*" || strings.TrimPrefix(given, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
