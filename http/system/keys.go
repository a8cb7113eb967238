package system

import (
	"net/http"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
)

// keyBody is an API key in JSON (CONTRACT section 6). Only the response to its creation contains Key, the secret that clients send.
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

// keys serves the API keys (CONTRACT section 6). They can be created while authentication is off, so that they exist before it is turned
// on.
type keys struct{ port Keys }

func (k keys) register(r *api.Router) {
	r.Handle(http.MethodGet, "/keys", k.list, api.StrictParams(), api.System())
	r.Handle(http.MethodPost, "/keys", k.create, api.StrictParams(), api.System())
	r.Handle(http.MethodDelete, "/keys/{id}", k.revoke, api.StrictParams(), api.System())
}

func (k keys) list(w http.ResponseWriter, r *http.Request) error {
	all, err := k.port.List(r.Context())
	if err != nil {
		return err
	}
	list := keyList{Keys: make([]keyBody, len(all))}
	for i, one := range all {
		list.Keys[i] = newKeyBody(one)
	}
	return api.WriteJSON(w, http.StatusOK, list)
}

func (k keys) create(w http.ResponseWriter, r *http.Request) error {
	body, err := api.ReadJSON(r)
	if err != nil {
		return err
	}
	requested, err := decodeKey(body)
	if err != nil {
		return err
	}
	key, secret, err := k.port.Create(r.Context(), requested.Name, requested.Scopes, requested.ExpiresAt)
	if err != nil {
		return err
	}
	answer := newKeyBody(key)
	answer.Key = secret
	return api.WriteJSON(w, http.StatusOK, answer)
}

// decodeKey decodes the key to create. It rejects unknown members, because a misspelt expiresAt would create a key that never expires.
func decodeKey(body []byte) (core.APIKey, error) {
	members, err := api.DecodeObject(body)
	if err != nil {
		return core.APIKey{}, err
	}
	if err := members.Only("name", "scopes", "expiresAt"); err != nil {
		return core.APIKey{}, err
	}
	var k core.APIKey
	if k.Name, err = members.Text("name"); err != nil {
		return core.APIKey{}, err
	}
	if k.Scopes, err = members.Texts("scopes"); err != nil {
		return core.APIKey{}, err
	}
	expires, err := members.Text("expiresAt")
	if err != nil {
		return core.APIKey{}, err
	}
	if members.Has("expiresAt") {
		if k.ExpiresAt, err = time.Parse(time.RFC3339, expires); err != nil {
			return core.APIKey{}, api.MemberError("expiresAt", "must be a time such as 2026-12-31T00:00:00Z, not "+api.QuoteValue(expires))
		}
	}
	return k, nil
}

// revoke revokes a key and returns its new state.
func (k keys) revoke(w http.ResponseWriter, r *http.Request) error {
	id, err := api.PathParam(r, "id", "id")
	if err != nil {
		return err
	}
	if err := api.ReadEmptyObject(r); err != nil {
		return err
	}
	key, err := k.port.Revoke(r.Context(), id)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, http.StatusOK, newKeyBody(key))
}
