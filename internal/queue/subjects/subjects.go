// Package subjects names the subjects of Requests and of dead letters.
package subjects

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"tutti/internal/core"
)

// Prefixes of subjects.
const (
	RequestPrefix = "tutti.requests."
	DeadPrefix    = "tutti.dead."

	// noToken replaces an empty part of a dead letter's subject and starts the hash of a part that is too long. A tilde
	// is not in the base64url alphabet, so neither can be taken for an encoded part.
	noToken = "~"

	// retryPrefix starts the subjects of retries of dead letters, which may be of all repositories, or of one that is not configured.
	retryPrefix = RequestPrefix + noToken + "." + string(core.ScopeRetry) + "."
)

// EncodeToken returns s as one token of a subject: base64url without padding, so that no byte of an id is a separator
// or a wildcard.
func EncodeToken(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// DecodeToken reverses EncodeToken; CodeInvalid when the token is not base64url.
func DecodeToken(token string) (string, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return "", core.WrapError(core.CodeInvalid, "the token is not base64url", err)
	}
	return string(raw), nil
}

// OfRequest validates r and returns its subject (DESIGN, Subjects).
func OfRequest(r core.Request) (string, error) {
	if err := r.Validate(); err != nil {
		return "", err
	}
	if r.Scope != core.ScopeRecord && r.Scope != core.ScopeRecords {
		if err := core.ValidKey("job id", r.JobID); err != nil {
			return "", err
		}
	}
	if r.Scope == core.ScopeRetry {
		return retryPrefix + EncodeToken(r.JobID), nil
	}
	repository := RequestPrefix + EncodeToken(r.Repository) + "." + string(r.Scope) + "."
	switch r.Scope {
	case core.ScopeRecord:
		return repository + EncodeToken(r.Organization) + "." + EncodeToken(r.RecordID), nil
	case core.ScopeRecords:
		return repository + EncodeToken(r.ID), nil
	case core.ScopePage:
		return repository + EncodeToken(r.JobID) + "." + EncodeToken(r.Organization) + "." +
			pageToken(*r.Page), nil
	case core.ScopeOrganization:
		return repository + EncodeToken(r.Organization) + "." + EncodeToken(r.JobID), nil
	case core.ScopeRepository, core.ScopeIDs:
		return repository + EncodeToken(r.JobID), nil
	default:
		return "", core.NewError(core.CodeInvalid, fmt.Sprintf("unknown scope %q", r.Scope))
	}
}

// pageToken returns a page's number, and the epoch of its chain if the list was restarted: a page of the older chain
// must not replace one of the new chain. A group is none of the pages of its first organization.
func pageToken(p core.Page) string {
	token := strconv.Itoa(p.Number)
	if p.Group {
		return "group-" + token
	}
	if p.Epoch > 0 {
		token += "-" + strconv.Itoa(p.Epoch)
	}
	return token
}

// ClassFilters returns the subjects of one class of a repository. The filters of all consumers do not overlap, as a
// work queue requires.
func ClassFilters(repository string, class core.Class) ([]string, error) {
	prefix := RequestPrefix + EncodeToken(repository) + "."
	switch class {
	case core.ClassRetries:
		return []string{retryPrefix + ">"}, nil
	case core.ClassRecords:
		return []string{prefix + string(core.ScopeRecord) + ".>"}, nil
	case core.ClassBatches:
		return []string{prefix + string(core.ScopeRecords) + ".>"}, nil
	case core.ClassPages:
		return []string{prefix + string(core.ScopePage) + ".>"}, nil
	case core.ClassRuns:
		return []string{
			prefix + string(core.ScopeOrganization) + ".>", prefix + string(core.ScopeRepository) + ".>", prefix + string(core.ScopeIDs) + ".>",
		}, nil
	default:
		return nil, core.NewError(core.CodeInvalid, fmt.Sprintf("unknown class of consumer %q", class))
	}
}

// RecordFilter selects the record Requests of an organization, or of the whole repository when organization is empty.
func RecordFilter(repository, organization string) string {
	token := "*"
	if organization != "" {
		token = EncodeToken(organization)
	}
	return RequestPrefix + EncodeToken(repository) + "." + string(core.ScopeRecord) + "." + token + ".*"
}

// Parts are the parts of a Request's subject, for a body that cannot be decoded.
type Parts struct {
	Repository   string
	scope        core.Scope
	Organization string
	RecordID     string
	JobID        string
}

// Parse decodes as many parts as it can; parts that cannot be decoded are empty.
func Parse(subject string) Parts {
	tokens := strings.Split(strings.TrimPrefix(subject, RequestPrefix), ".")
	part := func(i int) string {
		if i >= len(tokens) {
			return ""
		}
		s, err := DecodeToken(tokens[i])
		if err != nil {
			return ""
		}
		return s
	}
	p := Parts{Repository: part(0)}
	if len(tokens) < 2 {
		return p
	}
	p.scope = core.Scope(tokens[1])
	switch p.scope {
	case core.ScopeRecord:
		p.Organization, p.RecordID = part(2), part(3)
	case core.ScopeRecords: // its body names them
	case core.ScopePage:
		p.JobID, p.Organization = part(2), part(3)
	case core.ScopeOrganization:
		p.Organization, p.JobID = part(2), part(3)
	case core.ScopeRepository, core.ScopeIDs, core.ScopeRetry:
		p.JobID = part(2)
	}
	return p
}

// IsOfRetry reports whether a subject is that of a retry of dead letters.
func IsOfRetry(subject string) bool { return strings.HasPrefix(subject, retryPrefix) }

// Shorten returns s, or its hash if it is too long for a subject.
func Shorten(s string) string {
	if len(s) <= core.MaxIDBytes {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return noToken + hex.EncodeToString(sum[:])
}

// IsDeadLetterOf reports whether a subject is of a dead letter of an organization.
func IsDeadLetterOf(subject, organization string) bool {
	_, rest, _ := strings.Cut(strings.TrimPrefix(subject, DeadPrefix), ".")
	token, _, _ := strings.Cut(rest, ".")
	var room [256]byte
	return token == string(appendDeadLetterToken(room[:0], organization))
}

// OfRecordDeadLetter returns the subject of a record's dead letter.
func OfRecordDeadLetter(repository, organization, id string) string {
	return string(AppendRecordDeadLetter(nil, repository, organization, id))
}

// AppendRecordDeadLetter appends OfRecordDeadLetter to b.
func AppendRecordDeadLetter(b []byte, repository, organization, id string) []byte {
	b = appendDeadLetterToken(append(b, DeadPrefix...), repository)
	b = appendDeadLetterToken(append(b, '.'), organization)
	return appendDeadLetterToken(append(b, '.'), id)
}

// DeadLetterSuffix returns the end of the subjects of the dead letters of the records with an id.
func DeadLetterSuffix(id string) string {
	return string(appendDeadLetterToken([]byte{'.'}, id))
}

// ofRequestDeadLetter returns the subject of the dead letter of a page or run Request: one for each subject of a
// Request, which names its scope, its job and its page. The subject is hashed, because a body that cannot be decoded
// may be on any subject.
func ofRequestDeadLetter(repository, organization, subject string) string {
	sum := sha256.Sum256([]byte(subject))
	return OfRecordDeadLetter(repository, organization, "") + "." + hex.EncodeToString(sum[:])
}

// OfDeadLetter returns the subject of l: that of its record, of its page or run Request, or of its message.
func OfDeadLetter(l core.DeadLetter) string {
	if l.Source != "" {
		return ofRequestDeadLetter(l.Repository, l.Organization, "message "+l.Source+"\x00"+l.SHA256)
	}
	if l.Request != nil && l.Request.Scope != core.ScopeRecord && l.RecordID == "" {
		if subject, err := OfRequest(*l.Request); err == nil {
			return ofRequestDeadLetter(l.Repository, l.Organization, subject)
		}
	}
	return OfRecordDeadLetter(l.Repository, l.Organization, l.RecordID)
}

// OfUnreadable is OfDeadLetter for the dead letter of a message whose body is not a Request.
func OfUnreadable(l core.DeadLetter, subject string) string {
	if Parse(subject).scope != core.ScopeRecord {
		return ofRequestDeadLetter(l.Repository, l.Organization, subject)
	}
	return OfRecordDeadLetter(l.Repository, l.Organization, l.RecordID)
}

// appendDeadLetterToken appends a part of a dead letter's subject to b. Parts over core.MaxIDBytes are replaced by
// their hash.
func appendDeadLetterToken(b []byte, s string) []byte {
	switch {
	case s == "":
		return append(b, noToken...)
	case len(s) > core.MaxIDBytes:
		return append(b, Shorten(s)...)
	default:
		return base64.RawURLEncoding.AppendEncode(b, []byte(s))
	}
}

// RecordOfDeadLetter returns the names in the subject of a record's dead letter; false when it is of another, or has the hash of one.
func RecordOfDeadLetter(subject string) (repository string, record core.RecordKey, ok bool) {
	tokens := strings.Split(strings.TrimPrefix(subject, DeadPrefix), ".")
	if len(tokens) != 3 {
		return "", core.RecordKey{}, false
	}
	for i, name := range []*string{&repository, &record.Organization, &record.ID} {
		if tokens[i] == noToken && i < 2 {
			continue
		}
		decoded, err := DecodeToken(tokens[i])
		if err != nil {
			return "", core.RecordKey{}, false
		}
		*name = decoded
	}
	return repository, record, true
}

// DeadLetterRepository returns the repository in the subject of a dead letter, or the hash of a long one; false when
// subject is not of a dead letter.
func DeadLetterRepository(subject string) (string, bool) {
	rest, ok := strings.CutPrefix(subject, DeadPrefix)
	if !ok {
		return "", false
	}
	token, _, _ := strings.Cut(rest, ".")
	switch {
	case token == noToken:
		return "", true
	case strings.HasPrefix(token, noToken):
		return token, true
	}
	repository, err := DecodeToken(token)
	return repository, err == nil
}
