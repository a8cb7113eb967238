package http

import (
	"net/http"
	"time"

	"tutti/internal/core"
)

// keyBody is an API key as CONTRACT section 6 has it. Key, the whole text that its holder shows, is given once: in the
// answer to the request that made it.
type keyBody struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Scopes    []string  `json:"scopes"`
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	RevokedAt time.Time `json:"revokedAt,omitzero"`
	Key       string    `json:"key,omitempty"`
}

type keyList struct {
	Keys []keyBody `json:"keys"`
}

func newKeyBody(k core.APIKey) keyBody {
	b := keyBody{
		ID: k.ID, Name: k.Name, Scopes: k.Scopes, CreatedAt: clampTime(k.CreatedAt), ExpiresAt: clampTime(k.ExpiresAt),
		RevokedAt: clampTime(k.RevokedAt),
	}
	if b.Scopes == nil {
		b.Scopes = []string{}
	}
	return b
}

// clampTime returns the nearest time in UTC that JSON can represent (RFC 3339: years 0 to 9999), so that one key with another time
// does not make the whole list fail.
func clampTime(t time.Time) time.Time {
	t = t.UTC()
	switch {
	case t.Year() < 0:
		return time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	case t.Year() > 9999:
		return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	default:
		return t
	}
}

// routeKeys routes the API keys (CONTRACT section 6). They can be made while nobody is asked for one, so that there are
// some when tokens are turned on.
func (h *Handler) routeKeys() {
	h.handle(http.MethodGet, "/keys", h.listKeys, allowParams(), system())
	h.handle(http.MethodPost, "/keys", h.createKey, allowParams(), system())
	h.handle(http.MethodDelete, "/keys/{id}", h.revokeKey, allowParams(), system())
}

func (h *Handler) listKeys(w http.ResponseWriter, r *http.Request) error {
	keys, err := h.ports.Keys.List(r.Context())
	if err != nil {
		return err
	}
	list := keyList{Keys: make([]keyBody, len(keys))}
	for i, k := range keys {
		list.Keys[i] = newKeyBody(k)
	}
	h.writeJSON(w, r, http.StatusOK, contentTypeJSON, list)
	return nil
}

func (h *Handler) createKey(w http.ResponseWriter, r *http.Request) error {
	body, err := h.readJSON(r)
	if err != nil {
		return err
	}
	wanted, err := newKeyOf(body)
	if err != nil {
		return err
	}
	key, text, err := h.ports.Keys.Create(r.Context(), wanted.Name, wanted.Scopes, wanted.ExpiresAt)
	if err != nil {
		return err
	}
	answer := newKeyBody(key)
	answer.Key = text
	h.writeJSON(w, r, http.StatusOK, contentTypeJSON, answer)
	return nil
}

// newKeyOf reads which key is wanted. A member that a key does not have is refused: a misspelt expiresAt would make a key
// that never expires.
func newKeyOf(body []byte) (core.APIKey, error) {
	members, err := decodeObject(body)
	if err != nil {
		return core.APIKey{}, err
	}
	if err := members.only("name", "scopes", "expiresAt"); err != nil {
		return core.APIKey{}, err
	}
	var k core.APIKey
	if k.Name, err = members.text("name"); err != nil {
		return core.APIKey{}, err
	}
	if k.Scopes, err = members.texts("scopes"); err != nil {
		return core.APIKey{}, err
	}
	expires, err := members.text("expiresAt")
	if err != nil {
		return core.APIKey{}, err
	}
	if members.has("expiresAt") {
		if k.ExpiresAt, err = time.Parse(time.RFC3339, expires); err != nil {
			return core.APIKey{}, memberError("expiresAt", "must be a time such as 2026-12-31T00:00:00Z, not "+quoteValue(expires))
		}
	}
	return k, nil
}

// revokeKey ends a key and answers it as it is afterwards.
func (h *Handler) revokeKey(w http.ResponseWriter, r *http.Request) error {
	id, err := pathParam(r, "id", "id")
	if err != nil {
		return err
	}
	if err := h.readEmptyObject(r); err != nil {
		return err
	}
	key, err := h.ports.Keys.Revoke(r.Context(), id)
	if err != nil {
		return err
	}
	h.writeJSON(w, r, http.StatusOK, contentTypeJSON, newKeyBody(key))
	return nil
}
