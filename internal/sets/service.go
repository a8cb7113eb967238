package sets

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"tutti/internal/core"
	"tutti/internal/store"
)

const (
	// columns are what scan reads.
	columns = "id, owner, catalogue, type, path, user_id, sqon, size, created_at, used_at, expires_at"
	// usesPerRetention is how often a set that is used all the time is noted to have been, while it would be kept without.
	usesPerRetention = 30
	// purgesPerRetention is how often saving looks for sets that have expired.
	purgesPerRetention = 720
	// maxShown is how much of an id that is unknown is told.
	maxShown = 64
)

// Service keeps saved sets. Its methods may be called from several goroutines at once, and several processes may use one
// PostgreSQL.
type Service struct {
	cfg   Config
	store *store.Store
	codec *codec
	cache *cache
	// purged is when saving looked for expired sets last, in microseconds.
	purged atomic.Int64
}

// New makes a Service on a store. CodeInvalid for a bad Config.
func New(s *store.Store, cfg Config) (*Service, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	p, err := newCodec(cfg.MaxBytes, cfg.MaxMembers)
	if err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, store: s, codec: p, cache: newCache(cfg.CacheBytes)}, nil
}

// MaxMembers returns how many members a set may have.
func (s *Service) MaxMembers() int { return s.cfg.MaxMembers }

// MayOwn reports whether an owner can have sets: CodeForbidden for nobody, "", unless Config allows it.
func (s *Service) MayOwn(owner string) error {
	if owner == "" && !s.cfg.AllowAnonymous {
		return &core.Error{
			Code: core.CodeForbidden, Message: "a set belongs to who saved it, and nobody is known without a token",
			Hint: "send an API key or a token",
		}
	}
	if !utf8.ValidString(owner) || strings.ContainsRune(owner, 0) {
		return core.NewError(core.CodeInvalid, "the name of who asks holds characters that cannot be kept")
	}
	return nil
}

// TooMany is the error of saving count members, CodeInvalid; nil when a set may have so many.
func (s *Service) TooMany(count int64) error {
	if count <= int64(s.cfg.MaxMembers) {
		return nil
	}
	return &core.Error{
		Code:    core.CodeInvalid,
		Message: fmt.Sprintf("the set would have %d members, and a set has %d at most", count, s.cfg.MaxMembers),
		Hint:    "narrow the filter, or use it in place of a set",
	}
}

// TooLarge is the error of saving members of size bytes in all, CodeInvalid; nil when a set may have so many.
func (s *Service) TooLarge(size int) error {
	if size <= s.cfg.MaxBytes {
		return nil
	}
	return core.NewError(core.CodeInvalid, fmt.Sprintf(
		"the members of the set are %d bytes, and those of a set are %d at most", size, s.cfg.MaxBytes,
	))
}

// Save keeps a new set of the members, which are distinct, in their order, and returns it: of set it takes Owner, Catalogue, Type,
// Path, UserID and SQON. It is durable, and seen by every other method, when Save returns. CodeForbidden where MayOwn returns it,
// CodeInvalid for too many members, CodeConflict when the owner has too many sets.
func (s *Service) Save(ctx context.Context, set core.SavedSet, members []string) (core.SavedSet, error) {
	if err := s.MayOwn(set.Owner); err != nil {
		return core.SavedSet{}, err
	}
	if err := s.TooMany(int64(len(members))); err != nil {
		return core.SavedSet{}, err
	}
	if err := s.TooLarge(sizeOf(members)); err != nil {
		return core.SavedSet{}, err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return core.SavedSet{}, core.WrapError(core.CodeInternal, "making the id of a saved set", err)
	}
	now := s.now()
	set.ID, set.Size, set.CreatedAt, set.UsedAt, set.ExpiresAt = id.String(), len(members), now, now, now.Add(s.cfg.Retention)
	set.Catalogue, set.Type, set.Path, set.UserID = storable(set.Catalogue), storable(set.Type), storable(set.Path), storable(set.UserID)
	if set.SQON != nil {
		set.SQON = json.RawMessage(storable(string(set.SQON)))
	}
	s.purgeIfDue(ctx, now)
	if err := s.insert(ctx, set, s.codec.pack(members)); err != nil {
		return core.SavedSet{}, err
	}
	return set, nil
}

func (s *Service) insert(ctx context.Context, set core.SavedSet, blob []byte) error {
	const doing = "saving a set"
	return s.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		var have int
		err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM saved_set WHERE owner = $1 AND expires_at > $2",
			set.Owner, store.Micros(set.CreatedAt)).Scan(&have)
		if err != nil {
			return store.WrapError(doing, err)
		}
		if have >= s.cfg.MaxPerOwner {
			return &core.Error{
				Code: core.CodeConflict, Message: fmt.Sprintf("there are %d saved sets of yours, which is the most", have),
				Hint: "delete some, or wait until one has expired that is not used",
			}
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO saved_set ("+columns+", members) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
			set.ID, set.Owner, set.Catalogue, set.Type, set.Path, set.UserID, string(set.SQON), set.Size,
			store.Micros(set.CreatedAt), store.Micros(set.UsedAt), store.Micros(set.ExpiresAt), blob)
		return store.WrapError(doing, err)
	})
}

// Members returns the members of a set in their order for a filter that names it, and puts off its end: this is what using a set
// means. They must not be changed. CodeNotFound for a set that is unknown, another's or expired, which nobody can tell apart.
func (s *Service) Members(ctx context.Context, owner, id string) ([]string, error) {
	set, err := s.find(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	s.touch(ctx, set)
	return s.members(ctx, set)
}

// Peek is Members for who only looks at a set: its end stays where it is.
func (s *Service) Peek(ctx context.Context, owner, id string) ([]string, error) {
	set, err := s.find(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	return s.members(ctx, set)
}

// members returns the members of a set that was found.
func (s *Service) members(ctx context.Context, set core.SavedSet) ([]string, error) {
	if members, kept := s.cache.get(set.ID); kept {
		return members, nil
	}
	var blob []byte
	row := s.store.Read().QueryRowContext(ctx, "SELECT members FROM saved_set WHERE id = $1", set.ID)
	switch err := row.Scan(&blob); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, unknownSet(set.ID)
	case err != nil:
		return nil, store.WrapError("reading the members of a saved set", err)
	}
	members, err := s.codec.unpack(blob, set.Size)
	if err != nil {
		return nil, err
	}
	s.cache.put(set.ID, members)
	return members, nil
}

// find returns a set of an owner.
func (s *Service) find(ctx context.Context, owner, id string) (core.SavedSet, error) {
	if s.MayOwn(owner) != nil || !isID(id) {
		return core.SavedSet{}, unknownSet(id)
	}
	set, err := scan(s.store.Read().QueryRowContext(ctx,
		"SELECT "+columns+" FROM saved_set WHERE id = $1 AND owner = $2 AND expires_at > $3", id, owner, store.Micros(s.now())))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return core.SavedSet{}, unknownSet(id)
	default:
		return set, store.WrapError("reading a saved set", err)
	}
}

// touch puts off the end of a set, unless that was done a moment ago. A set can be used although it could not be put off.
func (s *Service) touch(ctx context.Context, set core.SavedSet) {
	now := s.now()
	if now.Sub(set.UsedAt) < s.cfg.Retention/usesPerRetention {
		return
	}
	err := s.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE saved_set SET used_at = $2, expires_at = $3 WHERE id = $1 AND used_at < $2",
			set.ID, store.Micros(now), store.Micros(now.Add(s.cfg.Retention)))
		return store.WrapError("noting the use of a saved set", err)
	})
	if err != nil && ctx.Err() == nil {
		s.cfg.Logger.Warn("the use of a saved set was not noted", "err", err)
	}
}

// List returns the sets of an owner that have not expired, the last saved first; none for one who cannot have any.
func (s *Service) List(ctx context.Context, owner string) ([]core.SavedSet, error) {
	const doing = "listing saved sets"
	if s.MayOwn(owner) != nil {
		return nil, nil
	}
	rows, err := s.store.Read().QueryContext(ctx,
		"SELECT "+columns+" FROM saved_set WHERE owner = $1 AND expires_at > $2 ORDER BY created_at DESC, id", owner, store.Micros(s.now()))
	if err != nil {
		return nil, store.WrapError(doing, err)
	}
	defer func() { _ = rows.Close() }()
	var all []core.SavedSet
	for rows.Next() {
		set, err := scan(rows)
		if err != nil {
			return nil, store.WrapError(doing, err)
		}
		all = append(all, set)
	}
	return all, store.WrapError(doing, rows.Err())
}

// Delete ends a set. CodeNotFound as Members.
func (s *Service) Delete(ctx context.Context, owner, id string) error {
	if s.MayOwn(owner) != nil || !isID(id) {
		return unknownSet(id)
	}
	err := s.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM saved_set WHERE id = $1 AND owner = $2 AND expires_at > $3",
			id, owner, store.Micros(s.now()))
		if err != nil {
			return store.WrapError("deleting a saved set", err)
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return unknownSet(id)
		}
		return nil
	})
	if err == nil {
		s.cache.remove(id)
	}
	return err
}

// Purge removes the sets that have expired, and returns how many there were.
func (s *Service) Purge(ctx context.Context) (int64, error) {
	var removed int64
	err := s.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM saved_set WHERE expires_at <= $1", store.Micros(s.now()))
		if err != nil {
			return store.WrapError("removing expired sets", err)
		}
		removed, err = result.RowsAffected()
		return store.WrapError("counting the expired sets that were removed", err)
	})
	return removed, err
}

// purgeIfDue purges when that was not done for a while. Saving does not depend on it.
func (s *Service) purgeIfDue(ctx context.Context, now time.Time) {
	last := s.purged.Load()
	if now.Sub(store.Time(last)) < s.cfg.Retention/purgesPerRetention || !s.purged.CompareAndSwap(last, store.Micros(now)) {
		return
	}
	if _, err := s.Purge(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Logger.Warn("expired sets were not removed", "err", err)
	}
}

// now is the time as the store keeps it.
func (s *Service) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Microsecond) }

// scanner is a row.
type scanner interface {
	Scan(dest ...any) error
}

func scan(row scanner) (core.SavedSet, error) {
	var set core.SavedSet
	var filter string
	var created, used, expires int64
	err := row.Scan(&set.ID, &set.Owner, &set.Catalogue, &set.Type, &set.Path, &set.UserID, &filter, &set.Size, &created, &used, &expires)
	if filter != "" {
		set.SQON = json.RawMessage(filter)
	}
	set.CreatedAt, set.UsedAt, set.ExpiresAt = store.Time(created), store.Time(used), store.Time(expires)
	return set, err
}

// isID reports whether a text has the form of an id, which is no secret. A database need not be able to keep any other.
func isID(text string) bool {
	id, err := uuid.Parse(text)
	return err == nil && id.String() == text
}

func unknownSet(id string) error {
	id = storable(id)
	if len(id) > maxShown {
		id = strings.ToValidUTF8(id[:maxShown], "") + "…"
	}
	return core.NewError(core.CodeNotFound, "there is no saved set "+id+", or it is not yours, or it has expired")
}
