package deadletter

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/paging"
	"tutti/internal/queue/subjects"
)

// StreamName is the name of the stream of dead letters.
const StreamName = "DEAD_LETTERS"

// listCursor is the name of the list in the cursors of List.
const listCursor = "dead-letters"

const (
	headerReason  = "Tutti-Reason"
	headerRemoved = "Tutti-Removed"
	// headerBody marks a record's dead letter that has a document, because the watch reads only headers.
	headerBody = "Tutti-Body"
	// headerFirst holds the sequence of the first of the dead letters that one replaces.
	headerFirst = "Tutti-First"
	// headerNamed marks a dead letter whose retry needs no more than the names in its subject.
	headerNamed = "Tutti-Named"
	// headerVersion holds the version by which a dead letter is ordered with other results of its record.
	headerVersion = "Tutti-Version"

	// tombstoneTTL is how long the tombstone of a removed dead letter is kept, so that processes that were disconnected see the
	// removal.
	tombstoneTTL = time.Hour
	// headerReserve is the part of the maximum message size that is reserved for headers and subject.
	headerReserve = 16 << 10
	// maxTextBytes limits each text of a dead letter, such as the engine's reason; maxNameBytes each name or id. With
	// each byte escaped as six they fill less than half a message.
	maxTextBytes = 16 << 10
	maxNameBytes = 2 << 10
	// maxPerSubject is never reached. The server makes the blocks of a stream with such a limit half as large, and to remove a message it
	// loads its block into memory.
	maxPerSubject = 1 << 40
	// indexWait is how long a change waits until this process's index shows it.
	indexWait = 2 * time.Second
)

// Store holds one dead letter for each record, page Request, run Request or message that tutti stopped retrying.
type Store struct {
	conn   *natsconn.Conn
	cfg    Config
	stream jetstream.Stream
	index  *index

	settled settled
	// obsolete holds the subjects of dead letters that the watch must remove.
	obsolete []string
}

// Config configures a Store.
type Config struct {
	// MaxDocuments limits how many dead letters of a repository's records are stored with their document.
	MaxDocuments int
	// Metrics is optional.
	Metrics *Metrics
	// Label returns the label of a repository in metrics.
	Label func(repository string) string
}

// StreamConfig returns the configuration of the stream. It allows message TTLs, which only the tombstones of removed dead
// letters have.
func StreamConfig(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              StreamName,
		Description:       "Records that tutti gave up on",
		Subjects:          []string{subjects.DeadPrefix + ">", natsconn.ProbePrefix + StreamName},
		Retention:         jetstream.LimitsPolicy,
		Storage:           jetstream.FileStorage,
		MaxMsgsPerSubject: maxPerSubject,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		Discard:           jetstream.DiscardOld,
		AllowRollup:       true,
		AllowMsgTTL:       true,
		Replicas:          replicas,
	}
}

// Renew rewrites the stream of an earlier version, which would bring back removed dead letters after a crash (natsconn.Conn.Renew). What it
// copies keeps its first sequence, so that it is not new.
func Renew(ctx context.Context, conn *natsconn.Conn, replicas int) error {
	return conn.Renew(ctx, StreamConfig(replicas), func(copied *nats.Msg, sequence uint64) {
		if !isRemoved(copied.Header) {
			copied.Header.Set(headerFirst, strconv.FormatUint(firstOf(copied.Header, sequence), 10))
		}
	})
}

// New returns a Store of the dead letters in stream. Watch must run for its index to be loaded and current.
func New(conn *natsconn.Conn, stream jetstream.Stream, cfg Config) *Store {
	return &Store{conn: conn, cfg: cfg, stream: stream, index: newIndex(), settled: settled{seed: maphash.MakeSeed()}}
}

// Put stores l and returns when the server has it on disk. It replaces a dead letter of the same record, of the same
// page or run Request if l names no record, or of a message from the same Source with the same SHA256: FirstAt is
// kept, Attempts are added. ID, LastAt and, for a new dead letter, FirstAt are set. Texts and documents that exceed
// the message size are truncated. If Config.MaxDocuments dead letters of the repository already have a
// document, the document is left out: its size and hash stay, and the hint says so. A message (Source) is always
// stored with its document and does not count: unlike a record it cannot be fetched again. A dead letter with a version older than that of
// the stored one, or with which this process has settled the record, is not stored; if another process has, that process removes it.
func (d *Store) Put(ctx context.Context, l core.DeadLetter) error {
	return d.PutAt(ctx, subjects.OfDeadLetter(l), l)
}

// DeadLetterID returns the id that Put stores l under.
func (d *Store) DeadLetterID(l core.DeadLetter) string {
	return idOf(subjects.OfDeadLetter(l))
}

// PutAt is like Put, but stores l under a subject.
func (d *Store) PutAt(ctx context.Context, subject string, l core.DeadLetter) error {
	l.ID = idOf(subject)
	l.LastAt = time.Now().UTC()
	truncateTexts(&l)
	for {
		old, at, err := d.lastAt(ctx, subject)
		if err != nil && !natsconn.IsNotFound(err) {
			return natsconn.WrapError("reading a dead letter", err)
		}
		if ordered(l) && (newer(old.Version, l.Version) || d.settled.after([]byte(subject), l.Version)) {
			return nil
		}
		ack, err := d.store(ctx, subject, at, d.limitDocuments(old, merge(old, l)))
		if err = natsconn.WrapError("storing a dead letter", err); err == nil {
			if l.Attempts > 0 || at.first == 0 {
				d.cfg.Metrics.count(d.cfg.Label(l.Repository), l.Reason)
			}
			d.awaitShown(ctx, ack)
			return nil
		}
		if !natsconn.IsConflict(err) {
			return err
		}
		if err := retry.Sleep(ctx, natsconn.ConflictDelay()); err != nil {
			return natsconn.WrapError("storing a dead letter", err)
		}
	}
}

// merge returns l as the successor of old, which is the zero value when there was none.
func merge(old, l core.DeadLetter) core.DeadLetter {
	if !old.FirstAt.IsZero() {
		l.FirstAt = old.FirstAt
	}
	if l.FirstAt.IsZero() {
		l.FirstAt = l.LastAt
	}
	l.Attempts += old.Attempts
	return l
}

// limitDocuments returns l without its document if its repository has reached the limit. If old has a document, l keeps its own.
// Concurrent calls may exceed the limit, because the index lags.
func (d *Store) limitDocuments(old, l core.DeadLetter) core.DeadLetter {
	most := d.cfg.MaxDocuments
	if l.Source != "" || len(l.Document) == 0 || len(old.Document) > 0 || d.index.bodies(l.Repository) < most {
		return l
	}
	l.Document, l.Truncated = nil, true
	l.Hint = strings.TrimPrefix(fmt.Sprintf("%s; the document was not stored: this repository already has %d dead letters with a document "+
		"(deadLetters.maxBodies)", l.Hint, most), "; ")
	return l
}

// store writes l if replaced is still the subject's last.
func (d *Store) store(ctx context.Context, subject string, replaced sequences, l core.DeadLetter) (*jetstream.PubAck, error) {
	data, err := encode(l, int(d.conn.NC.MaxPayload())-headerReserve)
	if err != nil {
		return nil, err
	}
	header := nats.Header{headerReason: {l.Reason}}
	if l.Source == "" && len(l.Document) > 0 {
		header.Set(headerBody, "1")
	}
	if named(subject, l) {
		header.Set(headerNamed, "1")
	}
	if ordered(l) {
		header.Set(headerVersion, strconv.FormatInt(int64(l.Version), 10))
	}
	if replaced.first != 0 {
		header.Set(headerFirst, strconv.FormatUint(replaced.first, 10))
	}
	return d.send(ctx, &nats.Msg{Subject: subject, Data: data, Header: header},
		jetstream.WithExpectLastSequencePerSubject(replaced.last))
}

// fromSubject returns what the subject of a record's dead letter says about it; false when it is of another, or has the hash of a name.
func fromSubject(subject string) (core.DeadLetter, bool) {
	repository, record, ok := subjects.RecordOfDeadLetter(subject)
	return core.DeadLetter{ID: idOf(subject), Repository: repository, Organization: record.Organization, RecordID: record.ID}, ok
}

// named reports whether the retry of l needs no more than the names in its subject.
func named(subject string, l core.DeadLetter) bool {
	names, ok := fromSubject(subject)
	return ok && l.OfRecord() && reflect.DeepEqual(names.RecordRequest(), l.RecordRequest())
}

func (d *Store) send(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	return d.conn.Replace(ctx, m, append(opts, jetstream.WithExpectStream(StreamName))...)
}

// stored is a dead letter as the stream holds it.
type stored struct {
	core.DeadLetter
	// Packed is the document of a record in the block format of S2 if that is shorter, because the server keeps the blocks of messages
	// that it touches in memory. Earlier versions store it as it is.
	Packed []byte `json:"packed,omitempty"`
}

// pack returns l as it is stored.
func pack(l core.DeadLetter) stored {
	packed := stored{DeadLetter: l}
	if l.Source != "" { // an earlier version can still retry a message
		return packed
	}
	if short := s2.Encode(nil, l.Document); len(short) < len(l.Document) {
		packed.Packed, packed.Document = short, nil
	}
	return packed
}

// unpack returns the dead letter of a stored message.
func unpack(data []byte) (core.DeadLetter, error) {
	var packed stored
	err := json.Unmarshal(data, &packed)
	if err == nil && len(packed.Packed) > 0 {
		var n int
		if n, err = s2.DecodedLen(packed.Packed); err == nil && n > core.MaxDeadLetterBytes {
			err = fmt.Errorf("a document of %d bytes", n)
		}
		if err == nil {
			packed.Document, err = s2.Decode(nil, packed.Packed)
		}
	}
	if err != nil {
		return core.DeadLetter{}, core.WrapError(core.CodeInternal, "decoding a dead letter", err)
	}
	return packed.DeadLetter, nil
}

// encode returns l as JSON of at most limit bytes, with as much of its document as fits.
func encode(l core.DeadLetter, limit int) ([]byte, error) {
	for {
		data, err := json.Marshal(pack(l))
		if err != nil {
			return nil, core.WrapError(core.CodeInvalid, "encoding a dead letter", err)
		}
		if len(data) <= limit || len(l.Document) == 0 {
			return data, nil
		}
		l.Document, l.Truncated = l.Document[:len(l.Document)/2], true
	}
}

// truncateTexts truncates the texts of a dead letter. The subject names the record in full, as a hash if necessary.
func truncateTexts(l *core.DeadLetter) {
	if len(l.Document) > core.MaxDeadLetterBytes {
		l.Document, l.Truncated = l.Document[:core.MaxDeadLetterBytes], true
	}
	truncateAll(maxTextBytes, &l.Hint, &l.EngineReason)
	truncateAll(maxNameBytes, &l.Repository, &l.Organization, &l.RecordID, &l.JobID, &l.Reason, &l.EngineType,
		&l.Source, &l.Position)
	// The reason is also a header, which must be one line.
	l.Reason = strings.Join(strings.Fields(l.Reason), " ")
	if l.Request == nil {
		return
	}
	r := *l.Request
	truncateAll(maxNameBytes, &r.ID, &r.Repository, &r.Organization, &r.RecordID, &r.JobID, &r.Traceparent)
	l.Request = &r
}

// truncateAll truncates each text to limit bytes, between two characters.
func truncateAll(limit int, texts ...*string) {
	for _, s := range texts {
		if len(*s) <= limit {
			continue
		}
		end := limit
		for end > limit-utf8.UTFMax && !utf8.RuneStart((*s)[end]) {
			end--
		}
		*s = (*s)[:end]
	}
}

// sequences are those of a dead letter: its own, and that of the first of those that it replaced, its own if it replaced none. Of
// a tombstone, first is 0.
type sequences struct{ last, first uint64 }

// last returns the dead letter of a subject and its sequence. It returns jetstream.ErrMsgNotFound if there is none, with the
// sequence of its tombstone if one exists.
func (d *Store) last(ctx context.Context, subject string) (core.DeadLetter, uint64, error) {
	l, at, err := d.lastAt(ctx, subject)
	return l, at.last, err
}

// lastAt is last with both sequences.
func (d *Store) lastAt(ctx context.Context, subject string) (core.DeadLetter, sequences, error) {
	m, err := d.stream.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		return core.DeadLetter{}, sequences{}, err
	}
	if isRemoved(m.Header) {
		return core.DeadLetter{}, sequences{last: m.Sequence}, jetstream.ErrMsgNotFound
	}
	at := sequences{m.Sequence, firstOf(m.Header, m.Sequence)}
	l, err := unpack(m.Data)
	return l, at, err
}

// firstOf returns the sequence of the first of the dead letters that the one with this header and sequence replaced, else its own.
func firstOf(header nats.Header, sequence uint64) uint64 {
	if first, err := strconv.ParseUint(header.Get(headerFirst), 10, 64); err == nil {
		return first
	}
	return sequence
}

// isRemoved reports whether h marks the tombstone of a removed dead letter or a deletion by the server.
func isRemoved(h nats.Header) bool {
	return h.Get(headerRemoved) != "" || h.Get(jetstream.MarkerReasonHeader) != ""
}

// Clear removes the dead letter of a record that was processed since; it succeeds if there is none. at is the version of that result, 0
// for any: a dead letter of a newer one stays, and one of an older one that another process stores later is removed then. clears decides
// about the dead letter, of which only Reason and Version may be set; nil removes any. One that replaces it at the same time is of a newer
// failure and is kept.
func (d *Store) Clear(
	ctx context.Context, repository, organization, id string, at core.Version, clears func(core.DeadLetter) bool,
) error {
	var room [512]byte
	subject := subjects.AppendRecordDeadLetter(room[:0], repository, organization, id)
	decides := func(l core.DeadLetter) bool {
		return (at == 0 || !newer(l.Version, at)) && (clears == nil || clears(l))
	}
	if at > 0 {
		d.settled.set(subject, at)
		e, found := d.index.on(subject)
		if !found {
			return nil
		}
		if e.version > 0 {
			if !decides(core.DeadLetter{Reason: e.kind.reason, Version: e.version}) {
				return nil
			}
			// Without reading it: its document is large, and the server keeps the block of messages around it in memory.
			ack, err := d.putTombstone(ctx, e.subject, e.sequence)
			d.awaitShown(ctx, ack)
			if !natsconn.IsConflict(err) { // else it was replaced since
				return err
			}
		}
	}
	err := d.remove(ctx, string(subject), decides)
	if natsconn.IsNotFound(err) || natsconn.IsConflict(err) {
		return nil
	}
	return err
}

// Delete removes the dead letter with this ID; CodeNotFound when there is none.
func (d *Store) Delete(ctx context.Context, id string) error {
	entry, ok := d.index.get(id)
	if !ok {
		return notFound()
	}
	for {
		err := d.remove(ctx, entry.subject, nil)
		if !natsconn.IsConflict(err) {
			return err
		}
		if err := retry.Sleep(ctx, natsconn.ConflictDelay()); err != nil {
			return natsconn.WrapError("removing a dead letter", err)
		}
	}
}

func notFound() error { return core.NewError(core.CodeNotFound, "no such dead letter") }

// remove removes a dead letter for which clears returns true, and waits until the index shows it.
func (d *Store) remove(ctx context.Context, subject string, clears func(core.DeadLetter) bool) error {
	ack, err := d.replaceByTombstone(ctx, subject, clears)
	d.awaitShown(ctx, ack)
	return err
}

// awaitShown waits until the index shows a stored message, nil for none.
func (d *Store) awaitShown(ctx context.Context, ack *jetstream.PubAck) {
	if ack != nil {
		d.index.await(ctx, ack.Sequence, indexWait)
	}
}

// replaceByTombstone replaces a dead letter for which clears returns true (nil for any) by a tombstone with a TTL: deleting the message
// would not notify other processes. It returns nil if clears returned false.
func (d *Store) replaceByTombstone(ctx context.Context, subject string, clears func(core.DeadLetter) bool) (*jetstream.PubAck, error) {
	letter, sequence, err := d.last(ctx, subject)
	if natsconn.IsNotFound(err) {
		return nil, notFound()
	}
	if err != nil && core.CodeOf(err) != core.CodeInternal {
		return nil, natsconn.WrapError("removing a dead letter", err)
	}
	if sequence == 0 {
		return nil, natsconn.WrapError("removing a dead letter", err)
	}
	if err == nil && clears != nil && !clears(letter) {
		return nil, nil
	}
	return d.putTombstone(ctx, subject, sequence)
}

// putTombstone replaces the dead letter with a sequence if it is still the last message of its subject.
func (d *Store) putTombstone(ctx context.Context, subject string, sequence uint64) (*jetstream.PubAck, error) {
	ack, err := d.send(ctx, &nats.Msg{Subject: subject, Header: nats.Header{headerRemoved: {"1"}}},
		jetstream.WithExpectLastSequencePerSubject(sequence), jetstream.WithMsgTTL(tombstoneTTL))
	return ack, natsconn.WrapError("removing a dead letter", err)
}

// Has reports whether a record has a dead letter. It reads only this process's index, which may lag behind other processes, and
// allocates nothing.
func (d *Store) Has(repository, organization, id string) bool {
	return d.index.has(repository, organization, id)
}

// Find returns the dead letter of a record as it is stored, with its document; CodeNotFound when there is none.
func (d *Store) Find(ctx context.Context, repository, organization, id string) (core.DeadLetter, error) {
	l, _, err := d.last(ctx, string(subjects.AppendRecordDeadLetter(nil, repository, organization, id)))
	if natsconn.IsNotFound(err) {
		return core.DeadLetter{}, notFound()
	}
	return l, natsconn.WrapError("reading a dead letter", err)
}

// maxFound is how many dead letters FindRecords returns.
const maxFound = 100

// FindRecords returns dead letters of records with an id, of all repositories and organizations, the last written first, at most 100.
// It searches this process's index, which may lag behind other processes.
func (d *Store) FindRecords(ctx context.Context, id string) ([]core.DeadLetter, error) {
	var found []core.DeadLetter
	suffix := subjects.DeadLetterSuffix(id)
	var subjectsOf []string
	d.index.each(0, func(e entry) bool {
		if strings.HasSuffix(e.subject, suffix) {
			subjectsOf = append(subjectsOf, e.subject)
		}
		return true
	})
	for _, subject := range subjectsOf {
		if len(found) == maxFound {
			break
		}
		l, _, err := d.last(ctx, subject)
		switch {
		case natsconn.IsNotFound(err): // removed since
		case err != nil:
			return nil, natsconn.WrapError("reading a dead letter", err)
		case l.Source == "" && l.RecordID == id:
			found = append(found, l)
		}
	}
	return found, nil
}

// Get returns the dead letter with this ID, with its document; CodeNotFound when there is none.
func (d *Store) Get(ctx context.Context, id string) (core.DeadLetter, error) {
	entry, ok := d.index.get(id)
	if !ok {
		return core.DeadLetter{}, notFound()
	}
	l, _, err := d.last(ctx, entry.subject)
	if natsconn.IsNotFound(err) {
		return core.DeadLetter{}, notFound()
	}
	return l, natsconn.WrapError("reading a dead letter", err)
}

// List returns the dead letters that f selects, the last written first, 50 by default and at most 1000, and the cursor of the next
// page, empty after the last one. A dead letter that is written while a caller pages is not returned. CodeInvalid for an invalid cursor.
func (d *Store) List(ctx context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
	before, err := parseCursor(f.Cursor)
	if err != nil {
		return nil, "", err
	}
	limit := paging.Size(f.Limit)
	letters := make([]core.DeadLetter, 0, min(limit, int(d.index.size.Load())))
	for next := before; ; {
		entries := d.index.list(f, next, limit-len(letters)+1)
		for _, entry := range entries {
			if len(letters) == limit {
				return letters, paging.EncodeCursor(listCursor, strconv.FormatUint(next, 36)), nil
			}
			l, sequence, err := d.last(ctx, entry.subject)
			switch {
			case natsconn.IsNotFound(err) || err == nil && sequence != entry.sequence && before > 0 && sequence >= before:
				// Removed, or written again and therefore on an earlier page.
			case err != nil:
				return nil, "", natsconn.WrapError("listing dead letters", err)
			default:
				letters = append(letters, l)
			}
			next = entry.sequence
		}
		if len(entries) == 0 {
			return letters, "", nil
		}
	}
}

// parseCursor returns the sequence below which the entries of a page are, 0 for the first page.
func parseCursor(cursor string) (uint64, error) {
	if cursor == "" {
		return 0, nil
	}
	position, err := paging.DecodeCursor(listCursor, cursor)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(position, 36, 64)
	if err != nil || n == 0 {
		return 0, paging.InvalidCursor(err)
	}
	return n, nil
}

// Count returns the number of dead letters per repository.
func (d *Store) Count() map[string]int { return d.index.counts() }

// CountReason returns the number of dead letters of a repository and of a reason, without a call to the server.
func (d *Store) CountReason(repository, reason string) int {
	return d.index.countReason(repository, reason)
}

// UpdateMetric sets the gauge of dead letters from the index.
func (d *Store) UpdateMetric() {
	if d.cfg.Metrics == nil {
		return
	}
	labelled := make(map[labels]int)
	d.index.eachKind(func(repository, reason string, letters int) {
		labelled[labels{d.cfg.Label(repository), reason}] += letters
	})
	d.cfg.Metrics.set(labelled)
}
