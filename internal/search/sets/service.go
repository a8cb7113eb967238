package sets

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"tutti/internal/base/cache"
	"tutti/internal/core"
	"tutti/internal/store"
)

// Defaults of Config.
const (
	DefaultRetention   = 30 * 24 * time.Hour
	DefaultMaxMembers  = 100_000
	DefaultMaxBytes    = 16 << 20
	DefaultMaxPerOwner = 1000
	DefaultCacheBytes  = 32 << 20
)

// Config configures a Service. The zero value is the default.
type Config struct {
	// Retention is how long a set is kept after its last use. Default DefaultRetention.
	Retention time.Duration
	// MaxMembers limits the number of members of a set, MaxBytes their total size in bytes. Defaults DefaultMaxMembers and
	// DefaultMaxBytes.
	MaxMembers, MaxBytes int
	// MaxPerOwner limits the sets of one owner. Default DefaultMaxPerOwner.
	MaxPerOwner int
	// CacheBytes limits the approximate memory of cached members, in bytes. Default DefaultCacheBytes.
	CacheBytes int
	// AllowAnonymous lets the owner "" have sets: without authentication it is the only local user. Default: no sets for it.
	AllowAnonymous bool
	// Logger receives warnings for operators. Default: no logging.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c Config) validate() error {
	for what, negative := range map[string]bool{
		"time that sets are kept": c.Retention < 0, "number of members of a set": c.MaxMembers < 0, "size of a set": c.MaxBytes < 0,
		"number of sets of an owner": c.MaxPerOwner < 0, "size of the cache of sets": c.CacheBytes < 0,
	} {
		if negative {
			return core.NewError(core.CodeInvalid, "the "+what+" must not be negative")
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Retention = cmp.Or(c.Retention, DefaultRetention)
	c.MaxMembers = cmp.Or(c.MaxMembers, DefaultMaxMembers)
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	c.MaxPerOwner = cmp.Or(c.MaxPerOwner, DefaultMaxPerOwner)
	c.CacheBytes = cmp.Or(c.CacheBytes, DefaultCacheBytes)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

const (
	// columns are the columns that scan reads.
	columns = "id, owner, catalogue, type, path, user_id, sqon, size, created_at, used_at, expires_at"
	// usesPerRetention is the maximum number of recorded uses of a set per retention period.
	usesPerRetention = 30
	// purgesPerRetention is the maximum number of purges by Save per retention period.
	purgesPerRetention = 720
	// maxShown is the maximum length of an unknown ID in a message, in bytes.
	maxShown = 64
)

// memberOverhead is the approximate cost of a cached member in addition to its bytes: its string header.
const memberOverhead = 16

// Service stores saved sets. It is safe for concurrent use, and several processes may share one PostgreSQL.
type Service struct {
	cfg   Config
	store *store.Store
	codec *codec
	// cache has the members of sets by id. They never change, and callers look up the set in the store first, so that no expired set
	// is served.
	cache *cache.LRU[string, []string]
	// purged is the time of the last purge by Save, in microseconds.
	purged atomic.Int64
}

// New returns a Service on a store. CodeInvalid for an invalid Config.
func New(s *store.Store, cfg Config) (*Service, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	p, err := newCodec(cfg.MaxBytes, cfg.MaxMembers)
	if err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, store: s, codec: p, cache: cache.NewLRU[string, []string](int64(cfg.CacheBytes))}, nil
}

// MaxMembers returns the maximum number of members of a set.
func (s *Service) MaxMembers() int { return s.cfg.MaxMembers }

// MayOwn returns an error if an owner cannot have sets: CodeForbidden for anonymous (""), unless Config allows it.
func (s *Service) MayOwn(owner string) error {
	if owner == "" && !s.cfg.AllowAnonymous {
		return &core.Error{
			Code: core.CodeForbidden, Message: "saved sets require a token: a set belongs to the caller who saved it",
			Hint: "send an API key or a token",
		}
	}
	if !utf8.ValidString(owner) || strings.ContainsRune(owner, 0) {
		return core.NewError(core.CodeInvalid, "the name of the caller contains characters that cannot be stored")
	}
	return nil
}

// TooMany returns a CodeInvalid error if count members are too many for a set; nil otherwise.
func (s *Service) TooMany(count int64) error {
	if count <= int64(s.cfg.MaxMembers) {
		return nil
	}
	return &core.Error{
		Code:    core.CodeInvalid,
		Message: fmt.Sprintf("the set would have %d members, more than the limit of %d", count, s.cfg.MaxMembers),
		Hint:    "narrow the filter, or use the filter instead of a set",
	}
}

// TooLarge returns a CodeInvalid error if members of size bytes are too large for a set; nil otherwise.
func (s *Service) TooLarge(size int) error {
	if size <= s.cfg.MaxBytes {
		return nil
	}
	return core.NewError(core.CodeInvalid, fmt.Sprintf(
		"the members of the set have %d bytes, more than the limit of %d", size, s.cfg.MaxBytes,
	))
}

// Save stores a new set of the distinct members in their order, and returns it. It uses Owner, Catalogue, Type, Path, UserID and
// SQON of set. When Save returns, the set is durable and visible to every other method. CodeForbidden as MayOwn, CodeInvalid for
// too many members, CodeConflict if the owner has too many sets.
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
		return core.SavedSet{}, core.WrapError(core.CodeInternal, "creating the id of a saved set", err)
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
				Code: core.CodeConflict, Message: fmt.Sprintf("you already have %d saved sets, which is the maximum", have),
				Hint: "delete some, or wait until unused ones expire",
			}
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO saved_set ("+columns+", members) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
			set.ID, set.Owner, set.Catalogue, set.Type, set.Path, set.UserID, string(set.SQON), set.Size,
			store.Micros(set.CreatedAt), store.Micros(set.UsedAt), store.Micros(set.ExpiresAt), blob)
		return store.WrapError(doing, err)
	})
}

// Members returns the members of a set in their order for use in a filter, and extends its expiry. The result must not be
// changed. CodeNotFound for a set that is unknown, expired or another owner's; the error is the same for all of these.
func (s *Service) Members(ctx context.Context, owner, id string) ([]string, error) {
	set, err := s.find(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	s.touch(ctx, set)
	return s.members(ctx, set)
}

// Peek is Members without extending the expiry.
func (s *Service) Peek(ctx context.Context, owner, id string) ([]string, error) {
	set, err := s.find(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	return s.members(ctx, set)
}

// members returns the members of a set that was found.
func (s *Service) members(ctx context.Context, set core.SavedSet) ([]string, error) {
	if members, kept := s.cache.Get(set.ID); kept {
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
	s.cache.Put(set.ID, members, int64(sizeOf(members)+memberOverhead*len(members)))
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

// touch extends the expiry of a set, unless that was done recently. An error is only logged.
func (s *Service) touch(ctx context.Context, set core.SavedSet) {
	now := s.now()
	if now.Sub(set.UsedAt) < s.cfg.Retention/usesPerRetention {
		return
	}
	err := s.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE saved_set SET used_at = $2, expires_at = $3 WHERE id = $1 AND used_at < $2",
			set.ID, store.Micros(now), store.Micros(now.Add(s.cfg.Retention)))
		return store.WrapError("recording the use of a saved set", err)
	})
	if err != nil && ctx.Err() == nil {
		s.cfg.Logger.Warn("recording the use of a saved set failed", "err", err)
	}
}

// List returns the unexpired sets of an owner, newest first; none for an owner that cannot have sets.
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

// Delete deletes a set. CodeNotFound as Members.
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
		s.cache.Remove(id)
	}
	return err
}

// Purge deletes expired sets, and returns their number.
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

// purgeIfDue purges if the last purge is long ago. Its errors do not affect saving.
func (s *Service) purgeIfDue(ctx context.Context, now time.Time) {
	last := s.purged.Load()
	if now.Sub(store.Time(last)) < s.cfg.Retention/purgesPerRetention || !s.purged.CompareAndSwap(last, store.Micros(now)) {
		return
	}
	if _, err := s.Purge(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Logger.Warn("removing expired saved sets failed", "err", err)
	}
}

// now returns the current time with the store's precision.
func (s *Service) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Microsecond) }

// scanner is a database row.
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

// isID reports whether a string has the form of an ID, which is not secret. Databases may reject other strings.
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

// errCorrupt is the cause of an error about a blob that codec did not write.
var errCorrupt = errors.New("unexpected encoding of members")

// minDecoderMemory is the minimum size limit for reading a set, in bytes: it may have been saved under a higher limit.
const minDecoderMemory = 64 << 20

// codec encodes members as one compressed blob of length-prefixed strings.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// newCodec returns a codec for members of at most maxBytes, without their lengths.
func newCodec(maxBytes, maxMembers int) (*codec, error) {
	const doing = "initializing the compression of saved sets"
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, doing, err)
	}
	most := max(uint64(maxBytes)+uint64(maxMembers+1)*binary.MaxVarintLen64, minDecoderMemory)
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(most))
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, doing, err)
	}
	return &codec{encoder: encoder, decoder: decoder}, nil
}

// pack encodes members.
func (p *codec) pack(members []string) []byte {
	var raw []byte
	for _, m := range members {
		raw = binary.AppendUvarint(raw, uint64(len(m)))
		raw = append(raw, m...)
	}
	return p.encoder.EncodeAll(raw, nil)
}

// unpack decodes a blob of count members.
func (p *codec) unpack(blob []byte, count int) ([]string, error) {
	raw, err := p.decoder.DecodeAll(blob, nil)
	if err != nil {
		return nil, corruptError(err)
	}
	// All members share the bytes of one string. Each takes at least one byte.
	text := string(raw)
	members := make([]string, 0, min(max(count, 0), len(raw)))
	for at := 0; at < len(raw); {
		size, n := binary.Uvarint(raw[at:])
		if n <= 0 || size > uint64(len(raw)-at-n) {
			return nil, corruptError(errCorrupt)
		}
		at += n
		members = append(members, text[at:at+int(size)])
		at += int(size)
	}
	if len(members) != count {
		return nil, corruptError(errCorrupt)
	}
	return members, nil
}

func corruptError(err error) error {
	return core.WrapError(core.CodeInternal, "reading the members of a saved set: they are corrupt", err)
}

// sizeOf returns the total size of members in bytes.
func sizeOf(members []string) int {
	size := 0
	for _, m := range members {
		size += len(m)
	}
	return size
}

// storable returns a string without bytes that databases reject.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
