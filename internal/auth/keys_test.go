package auth_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/auth"
	"tutti/internal/core"
)

func create(t testing.TB, keys *auth.Keys, name string, expires time.Time, scopes ...string) (core.APIKey, string) {
	t.Helper()
	key, text, err := keys.Create(t.Context(), name, scopes, expires)
	if err != nil {
		t.Fatal(err)
	}
	return key, text
}

// TestCreateStoresOnlyTheHash: nothing stored or listed contains the secret.
func TestCreateStoresOnlyTheHash(t *testing.T) {
	store := &keyStore{}
	keys := newKeys(t, store, auth.KeysConfig{Now: new(clock).now})
	key, text := create(t, keys, "portal", noon.Add(time.Hour).In(time.FixedZone("", 3600)), "S1.WRITE", "S2.READ", "S1.WRITE")
	parts := strings.SplitN(text, "_", 3)
	if len(parts) != 3 || parts[0] != "tutti" || parts[1] != key.ID || len(parts[2]) != 43 {
		t.Fatalf("text %q of key %q", text, key.ID)
	}
	sum := sha256.Sum256([]byte(parts[2]))
	want := core.APIKey{
		ID: key.ID, Name: "portal", Scopes: []string{"S1.WRITE", "S2.READ"}, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour), Hash: sum[:],
	}
	listed, err := keys.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]core.APIKey{want}, listed); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(fmt.Sprintf("%+v", listed), parts[2]) || bytes.Contains(listed[0].Hash, []byte(parts[2])) {
		t.Error("the secret is stored")
	}
	if key.ExpiresAt.Location() != time.UTC {
		t.Errorf("expiry in %v", key.ExpiresAt.Location())
	}
	_, other := create(t, keys, "portal", time.Time{}, "S1.WRITE")
	if other == text {
		t.Error("two keys are equal")
	}
}

func TestCreateRefuses(t *testing.T) {
	const hint = "describe in a few words what the key is for"
	const wildcards = "there are no wildcards: use one scope for each organization, or tutti.WRITE for everything"
	notScope := func(scope string) (string, string) {
		return fmt.Sprintf("%q is not a scope", scope), "use tutti.WRITE, <organization>.WRITE or <organization>.READ"
	}
	type want struct{ message, hint string }
	scope := func(s string) want { m, h := notScope(s); return want{m, h} }
	for _, tc := range []struct {
		name, key string
		scopes    []string
		expires   time.Time
		want      want
	}{
		{"no name", "", []string{"S1.READ"}, time.Time{}, want{"the name is empty", hint}},
		{"a blank name", " \t ", []string{"S1.READ"}, time.Time{}, want{"the name is empty", hint}},
		{"a long name", strings.Repeat("ä", 101), []string{"S1.READ"}, time.Time{}, want{"the name has more than 100 characters", hint}},
		{"a line feed", "a\nb", []string{"S1.READ"}, time.Time{}, want{"the name contains a character that is not printable", hint}},
		{"a turn of direction", "a\u202eb", []string{"S1.READ"}, time.Time{}, want{"the name contains a character that is not printable", hint}},
		{"bytes", "a\xff", []string{"S1.READ"}, time.Time{}, want{"the name is not valid UTF-8", hint}},
		{"no scope", "k", nil, time.Time{}, want{"a key needs at least one scope", "such as tutti.WRITE or <organization>.WRITE"}},
		{"many scopes", "k", make([]string, 1001), time.Time{}, want{"a key can have at most 1000 scopes", ""}},
		{"an empty scope", "k", []string{""}, time.Time{}, scope("")},
		{"no organization", "k", []string{".WRITE"}, time.Time{}, scope(".WRITE")},
		{"no suffix", "k", []string{"S1.WRITE", "S1"}, time.Time{}, scope("S1")},
		{"a space", "k", []string{"S1.WRITE tutti.WRITE"}, time.Time{}, scope("S1.WRITE tutti.WRITE")},
		{"a wide space", "k", []string{"S\u00a01.WRITE"}, time.Time{}, scope("S\u00a01.WRITE")},
		{"a control character", "k", []string{"S\x001.WRITE"}, time.Time{}, scope("S\x001.WRITE")},
		{"a relative segment", "k", []string{"...WRITE"}, time.Time{}, scope("...WRITE")},
		{
			"a time that has passed", "k",
			[]string{"S1.READ"},
			noon,
			want{"the expiry of the key is in the past", "set a time in the future, or none for a key that does not expire"},
		},
		{
			"a time that is of the year 10000 in UTC", "k",
			[]string{"S1.READ"},
			time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -23*3600)),
			want{"the expiry of the key is after the year 9999", "set a time in the future, or none for a key that does not expire"},
		},
		{"a wildcard", "k", []string{"*.WRITE"}, time.Time{}, want{`"*.WRITE" is not a scope`, wildcards}},
		{"a wildcard in a name", "k", []string{"S*.READ"}, time.Time{}, want{`"S*.READ" is not a scope`, wildcards}},
		{"everything as a wildcard", "k", []string{"*"}, time.Time{}, want{`"*" is not a scope`, wildcards}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := &keyStore{}
			keys := newKeys(t, store, auth.KeysConfig{Now: new(clock).now})
			_, text, err := keys.Create(t.Context(), tc.key, tc.scopes, tc.expires)
			wantError(t, err, core.CodeInvalid, tc.want.message)
			if core.HintOf(err) != tc.want.hint {
				t.Errorf("hint: got %q, want %q", core.HintOf(err), tc.want.hint)
			}
			if text != "" || len(store.keys) > 0 {
				t.Errorf("made %q, stored %v", text, store.keys)
			}
		})
	}
}

func TestKeysPassOnStoreErrors(t *testing.T) {
	down := core.NewError(core.CodeUnavailable, "the store does not answer")
	store := &keyStore{}
	keys := newKeys(t, store, auth.KeysConfig{})
	store.fail(down)
	_, _, err := keys.Create(t.Context(), "k", []string{"S1.READ"}, time.Time{})
	wantError(t, err, core.CodeUnavailable, "the store does not answer")
	_, err = keys.List(t.Context())
	wantError(t, err, core.CodeUnavailable, "the store does not answer")
	_, err = keys.Revoke(t.Context(), "x")
	wantError(t, err, core.CodeUnavailable, "the store does not answer")
	store.fail(nil)
	_, err = keys.Revoke(t.Context(), "x")
	wantError(t, err, core.CodeNotFound, "there is no such API key")
}

func TestAuthenticateKey(t *testing.T) {
	store, now := &keyStore{}, new(clock)
	keys := newKeys(t, store, auth.KeysConfig{Now: now.now})
	known, good := create(t, keys, "good", time.Time{}, "S1.WRITE")
	_, short := create(t, keys, "short", noon.Add(time.Minute), "S1.WRITE")
	revoked, ended := create(t, keys, "ended", time.Time{}, "S1.WRITE")
	if _, err := keys.Revoke(t.Context(), revoked.ID); err != nil {
		t.Fatal(err)
	}
	now.advance(time.Minute)
	swap := func(text string, at int) string {
		c := byte('A')
		if text[at] == c {
			c = 'B'
		}
		return text[:at] + string(c) + text[at+1:]
	}
	for _, tc := range []struct{ name, token, message string }{
		{"good", good, ""},
		{"expired", short, "the API key has expired"},
		{"revoked", ended, "the API key was revoked"},
		{"revoked, wrong secret", swap(ended, len(ended)-5), "the API key is unknown"},
		{"expired, wrong secret", swap(short, len(short)-5), "the API key is unknown"},
		{"first character of the secret", swap(good, 23), "the API key is unknown"},
		{"last character of the secret", swap(good, len(good)-1), "the API key is unknown"},
		{"another's secret", good[:23] + ended[23:], "the API key is unknown"},
		{"unknown id", "tutti_0000000000000000_" + good[23:], "the API key is unknown"},
		{"id in upper case", strings.ToUpper(good[:23]) + good[23:], "the token is not an API key"},
		{"cut", good[:len(good)-1], "the API key is unknown"},
		{"longer", good + "A", "the API key is unknown"},
		{"no secret", good[:22], "the API key is unknown"},
		{"prefix alone", "tutti_", "the API key is unknown"},
		{"empty", "", "the token is empty"},
		{"endless", "tutti_" + strings.Repeat("a", 16<<10), "the token is too long"},
		{"something else", "hunter2", "the token is not an API key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := auth.New(keys, nil, nil).Authenticate(t.Context(), tc.token)
			if tc.message == "" {
				if err != nil || p.ID != "key:"+known.ID || p.Name != "good" || !p.MayWrite("S1") || p.MayWrite("S2") {
					t.Errorf("got %+v, %v", p, err)
				}
				return
			}
			wantError(t, err, core.CodeUnauthenticated, tc.message)
			if diff := cmp.Diff(core.Principal{}, p); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEveryByteOfTheHashCounts: a hash that differs in any byte is rejected.
func TestEveryByteOfTheHashCounts(t *testing.T) {
	for i := range sha256.Size {
		store := &keyStore{}
		keys := newKeys(t, store, auth.KeysConfig{})
		_, text := create(t, keys, "k", time.Time{}, "S1.WRITE")
		if i == 0 {
			if _, err := keys.Authenticate(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			keys = newKeys(t, store, auth.KeysConfig{})
		}
		store.keys[0].Hash[i] ^= 1
		_, err := keys.Authenticate(t.Context(), text)
		wantError(t, err, core.CodeUnauthenticated, "the API key is unknown")
	}
}

// TestLastExpiry: an expiry at the end of the year 9999 can be encoded as JSON.
func TestLastExpiry(t *testing.T) {
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	key, _ := create(t, newKeys(t, &keyStore{}, auth.KeysConfig{}), "k", last, "S1.WRITE")
	if text, err := key.ExpiresAt.MarshalJSON(); err != nil || string(text) != `"9999-12-31T23:59:59Z"` {
		t.Errorf("%s, %v", text, err)
	}
}

// TestKeysAreReadOnce: a key is read from the store once per CacheFor, and errors and unknown ids are not cached.
func TestKeysAreReadOnce(t *testing.T) {
	store, now := &keyStore{}, new(clock)
	keys := newKeys(t, store, auth.KeysConfig{Now: now.now})
	_, text := create(t, keys, "k", time.Time{}, "S1.WRITE")
	authenticate := func(token string) error {
		_, err := keys.Authenticate(t.Context(), token)
		return err
	}
	reads := func(want int) {
		t.Helper()
		if store.reads != want {
			t.Errorf("%d reads, want %d", store.reads, want)
		}
	}
	store.fail(errors.New("the disk is gone"))
	for range 2 {
		wantError(t, authenticate(text), core.CodeUnavailable, "API keys cannot be verified now")
	}
	reads(2)
	store.fail(nil)
	for range 10 {
		if err := authenticate(text); err != nil {
			t.Fatal(err)
		}
	}
	reads(3)
	store.fail(errors.New("the disk is gone"))
	if err := authenticate(text); err != nil {
		t.Errorf("a kept key: %v", err)
	}
	now.advance(auth.CacheFor)
	wantError(t, authenticate(text), core.CodeUnavailable, "API keys cannot be verified now")
	reads(4)
	store.fail(nil)
	for range 2 {
		wantError(t, authenticate("tutti_0000000000000000_"+text[23:]), core.CodeUnauthenticated, "the API key is unknown")
	}
	reads(6)
}

// TestRevokedKeyEndsAtOnce: a revoked key is rejected at once, also when it was being read, and after at most CacheFor when another
// process revoked it.
func TestRevokedKeyEndsAtOnce(t *testing.T) {
	t.Run("in this process", func(t *testing.T) {
		store := &keyStore{}
		keys := newKeys(t, store, auth.KeysConfig{Now: new(clock).now})
		key, text := create(t, keys, "k", time.Time{}, "S1.WRITE")
		if _, err := keys.Authenticate(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		revoked, err := keys.Revoke(t.Context(), key.ID)
		if err != nil || !revoked.RevokedAt.Equal(noon) {
			t.Fatalf("got %+v, %v", revoked, err)
		}
		_, err = keys.Authenticate(t.Context(), text)
		wantError(t, err, core.CodeUnauthenticated, "the API key was revoked")
	})
	t.Run("while it is read", func(t *testing.T) {
		store := &keyStore{}
		keys := newKeys(t, store, auth.KeysConfig{Now: new(clock).now})
		key, text := create(t, keys, "k", time.Time{}, "S1.WRITE")
		store.reading = func() {
			if _, err := keys.Revoke(t.Context(), key.ID); err != nil {
				t.Error(err)
			}
		}
		if _, err := keys.Authenticate(t.Context(), text); err != nil {
			t.Fatalf("what was read before: %v", err)
		}
		_, err := keys.Authenticate(t.Context(), text)
		wantError(t, err, core.CodeUnauthenticated, "the API key was revoked")
	})
	t.Run("in another process", func(t *testing.T) {
		store, now := &keyStore{}, new(clock)
		here, there := newKeys(t, store, auth.KeysConfig{Now: now.now}), newKeys(t, store, auth.KeysConfig{Now: now.now})
		key, text := create(t, here, "k", time.Time{}, "S1.WRITE")
		if _, err := here.Authenticate(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		if _, err := there.Revoke(t.Context(), key.ID); err != nil {
			t.Fatal(err)
		}
		now.advance(auth.CacheFor)
		_, err := here.Authenticate(t.Context(), text)
		wantError(t, err, core.CodeUnauthenticated, "the API key was revoked")
	})
}

// TestManyKeysAtOnce: more keys than the cache holds, from several goroutines.
func TestManyKeysAtOnce(t *testing.T) {
	keys := newKeys(t, &keyStore{}, auth.KeysConfig{})
	texts := make([]string, 1100)
	for i := range texts {
		_, texts[i] = create(t, keys, fmt.Sprint(i), time.Time{}, fmt.Sprintf("S%d.WRITE", i))
	}
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range texts {
				i := (i + worker*300) % len(texts)
				p, err := keys.Authenticate(t.Context(), texts[i])
				if err != nil || !p.MayWrite(fmt.Sprintf("S%d", i)) || len(p.Writes) != 1 {
					t.Errorf("key %d: %+v, %v", i, p, err)
				}
			}
		})
	}
	group.Wait()
}
