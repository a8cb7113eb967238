package ingest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/jsontext"
)

// EventFormat is the kind of an event's body (CONTRACT section 1, Notifications in).
type EventFormat string

// Formats of an Event, each named by the member that only it has.
const (
	// FormatMaestro is a request for one record, organization or repository: repositoryCode.
	FormatMaestro EventFormat = "maestro"
	// FormatLyric is a change of one record of a tabular repository: systemId.
	FormatLyric EventFormat = "lyric"
	// FormatSong is a change of one analysis: analysisId without repositoryCode.
	FormatSong EventFormat = "song"
)

// Event is one decoded notification. It holds nothing of the record's state: the record as fetched decides, so that a
// late or repeated event cannot remove a published record.
type Event struct {
	Format EventFormat
	// Repository is the repositoryCode of FormatMaestro, or the songServerId of FormatSong, empty when absent.
	Repository string
	// Categories are the categoryId and the categoryAlias of FormatLyric, if present.
	Categories []string
	// Entity is the entityName of FormatLyric, empty when absent.
	Entity string
	// Organization and RecordID are empty if an event of FormatMaestro names a wider scope.
	Organization string
	RecordID     string
	// Remove is true only for removeAnalysis or remove of FormatMaestro.
	Remove bool
	// Unknown are names of members that no sender of this Format is known to write, in order, at most maxUnknown of them, shortened.
	Unknown []string
}

// Scope returns the scope that the event requests.
func (e Event) Scope() core.Scope {
	switch {
	case e.RecordID != "":
		return core.ScopeRecord
	case e.Organization != "":
		return core.ScopeOrganization
	default:
		return core.ScopeRepository
	}
}

// RejectionKind is the reason why an event is not accepted.
type RejectionKind int

// Kinds of Rejection.
const (
	// RejectNotUnderstood: the body is not an event, or a member is invalid.
	RejectNotUnderstood RejectionKind = iota
	// RejectOtherServer: the event is of another server than the repository's.
	RejectOtherServer
	// RejectUnknownRepository: the event names a repository that is not configured.
	RejectUnknownRepository
)

// Rejection says why an event is not accepted.
type Rejection struct {
	Kind RejectionKind
	// Member names the invalid member, empty for the event as a whole.
	Member string
	// Message describes the problem; it is safe to display.
	Message string
	// Server is the name of the other server or unknown repository, for RejectOtherServer and RejectUnknownRepository.
	Server string
	// Organization and RecordID are those of the event as far as they could be decoded.
	Organization string
	RecordID     string
}

// maxDepth limits the nesting of an event. Validating and reading JSON recurses once per level, so that a body of
// brackets could overflow the stack.
const maxDepth = 500

// maxUnknown is the number of unknown members of an event that are named, and maxUnknownBytes the length of a name.
const maxUnknown, maxUnknownBytes = 8, 64

// The members of an event that are read. All others are ignored.
const (
	memberRepository = "repositoryCode"
	memberStudy      = "studyId"
	memberAnalysis   = "analysisId"
	memberRemove     = "removeAnalysis"
	memberRemoveNew  = "remove" // as Maestro 5 names it
	memberValue      = "value"  // holds the event in Kafka's REST form
	memberServer     = "songServerId"
	memberSystem     = "systemId"
	memberOrg        = "organization"
	memberCategory   = "categoryId"
	memberAlias      = "categoryAlias"
	memberEntity     = "entityName"
)

// ignored are the members that are known and not read: the record is fetched.
var ignored = []string{"action", "state", "analysis", "isValid", "data"}

// ParseEvent decodes one event, which may be the member value of an object, as Kafka's REST form has it. It returns either an Event or a Rejection. A null member counts as absent, since
// producers write absent members so; a known member that occurs twice is rejected, since parsers disagree on which
// one counts.
func ParseEvent(data []byte) (Event, *Rejection) {
	if rejection := checkJSON(data, "the event"); rejection != nil {
		return Event{}, rejection
	}
	root := gjson.ParseBytes(data)
	if !root.IsObject() {
		return Event{}, &Rejection{Message: "the event is not a JSON object"}
	}
	return readEvent(root)
}

// checkJSON rejects data that is not one JSON value of at most maxDepth levels. what names it in the message.
func checkJSON(data []byte, what string) *Rejection {
	switch {
	case len(data) == 0:
		return &Rejection{Message: what + " is empty"}
	case jsontext.TooDeep(data, maxDepth):
		return &Rejection{Message: fmt.Sprintf("%s is nested deeper than %d levels", what, maxDepth)}
	case !gjson.ValidBytes(data):
		return &Rejection{Message: what + " is not valid JSON"}
	default:
		return nil
	}
}

// members holds the known members of an event that are present and not null.
type members map[string]gjson.Result

// readEvent decodes an event that is a valid JSON object.
func readEvent(object gjson.Result) (Event, *Rejection) {
	m := make(members, 4)
	twice := ""
	var unknown []string
	object.ForEach(func(key, value gjson.Result) bool {
		switch name := key.String(); name {
		case memberRepository, memberStudy, memberAnalysis, memberRemove, memberRemoveNew, memberServer, memberSystem, memberOrg,
			memberCategory, memberAlias, memberEntity, memberValue:
			if _, seen := m[name]; seen {
				twice = name
			}
			m[name] = value
		default:
			if len(unknown) < maxUnknown && !slices.Contains(ignored, name) {
				unknown = append(unknown, strings.ToValidUTF8(name[:min(len(name), maxUnknownBytes)], ""))
			}
		}
		return true
	})
	for name, value := range m {
		if value.Type == gjson.Null {
			delete(m, name)
		}
	}
	if inner := m[memberValue]; inner.IsObject() && len(m) == 1 && inner.Get(memberValue).Type != gjson.JSON {
		return readEvent(inner)
	}
	event, rejection := m.event(twice)
	if rejection != nil {
		rejection.Organization, rejection.RecordID = m.readable()
		return event, rejection
	}
	event.Unknown = unknown
	return event, nil
}

func (m members) event(twice string) (Event, *Rejection) {
	if twice != "" {
		return Event{}, rejectMember(twice, "occurs twice")
	}
	switch {
	case m.has(memberRepository):
		return m.maestro()
	case m.has(memberSystem):
		return m.lyric()
	case m.has(memberAnalysis):
		return m.song()
	default:
		return Event{}, &Rejection{Message: fmt.Sprintf("the event has none of the members %s, %s and %s",
			memberRepository, memberSystem, memberAnalysis)}
	}
}

func (m members) maestro() (Event, *Rejection) {
	e := Event{Format: FormatMaestro}
	var rejection *Rejection
	m.coerce(memberRepository, memberStudy, memberAnalysis)
	if e.Repository, rejection = m.key(memberRepository); rejection != nil {
		return Event{}, rejection
	}
	if m.has(memberStudy) {
		if e.Organization, rejection = m.key(memberStudy); rejection != nil {
			return Event{}, rejection
		}
	}
	if m.has(memberAnalysis) {
		if e.RecordID, rejection = m.key(memberAnalysis); rejection != nil {
			return Event{}, rejection
		}
	}
	removal := ""
	for _, name := range []string{memberRemove, memberRemoveNew} {
		switch {
		case !m.has(name):
		case m[name].Type != gjson.True && m[name].Type != gjson.False:
			return Event{}, rejectMember(name, "must be true or false")
		case removal != "" && e.Remove != m[name].Bool():
			return Event{}, rejectMember(name, "contradicts "+removal)
		default:
			removal, e.Remove = name, m[name].Bool()
		}
	}
	switch {
	case e.RecordID != "" && e.Organization == "":
		return Event{}, rejectMember(memberStudy, "is missing: "+memberAnalysis+" needs it")
	case e.Remove && e.RecordID == "":
		return Event{}, rejectMember(memberAnalysis, "is missing: "+removal+" exists for one record only")
	case e.Scope() == core.ScopeOrganization:
		if rejection = runnable(memberStudy, e.Organization); rejection != nil {
			return Event{}, rejection
		}
	}
	return e, nil
}

// coerce does what Maestro does with ids: an integer is its digits, and an empty studyId or analysisId is absent.
func (m members) coerce(names ...string) {
	for _, name := range names {
		switch value := m[name]; {
		case value.Type == gjson.Number && !strings.ContainsAny(value.Raw, ".eE"):
			m[name] = gjson.Result{Type: gjson.String, Str: value.Raw}
		case value.Type == gjson.String && value.Str == "" && name != memberRepository:
			delete(m, name)
		}
	}
}

// runnable checks an organization that may become a run: a run is displayed and requested by its organization, so the
// rules of a path apply to it.
func runnable(member, organization string) *Rejection {
	if err := core.ValidID(member, organization); err != nil {
		return &Rejection{Member: member, Message: core.MessageOf(err)}
	}
	return nil
}

func (m members) lyric() (Event, *Rejection) {
	e := Event{Format: FormatLyric}
	var rejection *Rejection
	if e.RecordID, rejection = m.key(memberSystem); rejection != nil {
		return Event{}, rejection
	}
	if e.Organization, rejection = m.key(memberOrg); rejection != nil {
		return Event{}, rejection
	}
	// A change of an entity that is not indexed itself runs the organization.
	if rejection = runnable(memberOrg, e.Organization); rejection != nil {
		return Event{}, rejection
	}
	if category, ok := m[memberCategory]; ok {
		switch category.Type {
		case gjson.Number:
			e.Categories = append(e.Categories, strings.Clone(category.Raw))
		case gjson.String:
			if e.Categories, rejection = m.appendKey(e.Categories, memberCategory); rejection != nil {
				return Event{}, rejection
			}
		case gjson.Null, gjson.False, gjson.True, gjson.JSON:
			return Event{}, rejectMember(memberCategory, "must be a number or a string")
		}
	}
	if m.has(memberAlias) {
		if e.Categories, rejection = m.appendKey(e.Categories, memberAlias); rejection != nil {
			return Event{}, rejection
		}
	}
	if entity := m[memberEntity]; entity.Type == gjson.String {
		e.Entity = strings.Clone(entity.String())
	}
	return e, nil
}

func (m members) song() (Event, *Rejection) {
	e := Event{Format: FormatSong}
	var rejection *Rejection
	if e.RecordID, rejection = m.key(memberAnalysis); rejection != nil {
		return Event{}, rejection
	}
	if e.Organization, rejection = m.key(memberStudy); rejection != nil {
		return Event{}, rejection
	}
	if m.has(memberServer) {
		if e.Repository, rejection = m.key(memberServer); rejection != nil {
			return Event{}, rejection
		}
	}
	return e, nil
}

func (m members) has(name string) bool {
	_, ok := m[name]
	return ok
}

// key returns a required member that becomes part of a Request.
func (m members) key(name string) (string, *Rejection) {
	value, ok := m[name]
	if !ok {
		return "", rejectMember(name, "is missing")
	}
	if value.Type != gjson.String {
		return "", rejectMember(name, "must be a string")
	}
	if err := core.ValidKey(name, value.Str); err != nil {
		return "", &Rejection{Member: name, Message: core.MessageOf(err)}
	}
	// The value may share the memory of the whole event.
	return strings.Clone(value.Str), nil
}

func (m members) appendKey(keys []string, name string) ([]string, *Rejection) {
	key, rejection := m.key(name)
	if rejection != nil {
		return nil, rejection
	}
	return append(keys, key), nil
}

// readable returns what can be decoded of the organization and the record of a rejected event.
func (m members) readable() (organization, recordID string) {
	first := func(names ...string) string {
		for _, name := range names {
			if v := m[name]; v.Type == gjson.String && v.Str != "" {
				return strings.ToValidUTF8(v.Str, "\uFFFD")
			}
		}
		return ""
	}
	if m.has(memberSystem) && !m.has(memberRepository) {
		return first(memberOrg), first(memberSystem)
	}
	return first(memberStudy), first(memberAnalysis)
}

// rejectMember returns a Rejection of one member.
func rejectMember(member, problem string) *Rejection {
	return &Rejection{Member: member, Message: member + " " + problem}
}
