// Package event decodes the events of notifications: of repositories, as webhooks and topics send them, and requests as Maestro has them.
//
// It imports internal/core and internal/base/jsontext only.
package event

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tutti/internal/base/jsontext"
	"tutti/internal/base/order"
	"tutti/internal/core"
)

// FormatMaestro is the format of a request for one record, organization or repository, the only one with a repositoryCode. The other
// formats are those of a Parser (CONTRACT section 1, Notifications in).
const FormatMaestro = "maestro"

// Event is one decoded notification. It does not contain the state of the record: that is fetched, so that a late or
// repeated event cannot remove a published record.
type Event struct {
	// Format is FormatMaestro or the name of another format.
	Format string
	// Repository is the repositoryCode of FormatMaestro.
	Repository string
	// Servers are the values of the members that name the server of an event of another format, if present.
	Servers []string
	// Deleted describes a deleted record of a format whose records have entities, nil for any other event.
	Deleted *core.Part
	// Organization and RecordID are empty if an event of FormatMaestro names a wider scope.
	Organization string
	RecordID     string
	// Remove is true only for removeAnalysis or remove of FormatMaestro.
	Remove bool
	// Unknown lists members that are in no known format, in order: at most maxUnknown names, shortened.
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

// Kind is the reason why an event is not accepted.
type Kind int

// Kinds of Rejection.
const (
	// NotUnderstood: the body is not an event, or a member is invalid.
	NotUnderstood Kind = iota
	// OtherServer: the event is of another server than the repository's.
	OtherServer
	// UnknownRepository: the event names a repository that is not configured.
	UnknownRepository
)

// Rejection says why an event is not accepted.
type Rejection struct {
	Kind Kind
	// Member names the invalid member, empty for the event as a whole.
	Member string
	// Message describes the problem; it is safe to display.
	Message string
	// Server is the name of the other server or unknown repository, for OtherServer and UnknownRepository.
	Server string
	// ServerTerm is the ServerTerm of the event's format.
	ServerTerm string
	// Organization and RecordID are those of the event as far as they could be decoded.
	Organization string
	RecordID     string
}

// maxDepth limits the nesting of an event. Validating and reading JSON recurses once per level, so that a body of
// brackets could overflow the stack.
const maxDepth = 500

// maxUnknown is the number of unknown members of an event that are named, and maxUnknownBytes the length of a name.
const maxUnknown, maxUnknownBytes = 8, 64

// The members of FormatMaestro, and memberValue, which holds the event in Kafka's REST form.
const (
	MemberRepository = "repositoryCode"
	memberStudy      = "studyId"
	memberAnalysis   = "analysisId"
	memberRemove     = "removeAnalysis"
	memberRemoveNew  = "remove" // as Maestro 5 names it
	memberValue      = "value"
)

// Parser decodes events of FormatMaestro and of other formats.
type Parser struct {
	// formats are sorted by name.
	formats []core.EventFormat
	// read holds the names of the members that are read, and those of other known ones with false.
	read map[string]bool
}

// NewParser returns an Parser of the formats of types of repository. Types may share a format.
func NewParser(byType map[core.RepositoryType]core.EventFormat) *Parser {
	p := &Parser{read: map[string]bool{}}
	for _, f := range byType {
		if !slices.ContainsFunc(p.formats, func(other core.EventFormat) bool { return other.Name == f.Name }) {
			p.formats = append(p.formats, f)
		}
	}
	order.Sort(p.formats, func(a, b core.EventFormat) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range p.formats {
		for _, name := range f.Ignored {
			p.read[name] = false
		}
	}
	names := []string{MemberRepository, memberStudy, memberAnalysis, memberRemove, memberRemoveNew, memberValue}
	for _, f := range p.formats {
		names = append(names, f.RecordID, f.Organization)
		for _, server := range f.Servers {
			names = append(names, server.Name)
		}
		for _, name := range []string{f.Entity, f.Data, f.Action} {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		p.read[name] = true
	}
	return p
}

// Parse decodes one event, which may be the member value of an object, as Kafka's REST form has it. It returns either an
// Event or a Rejection. A null member counts as absent, since producers write absent members so; a known member that
// occurs twice is rejected, since parsers disagree on which one counts.
func (p *Parser) Parse(data []byte) (Event, *Rejection) {
	if rejection := CheckJSON(data, "the event"); rejection != nil {
		return Event{}, rejection
	}
	root := gjson.ParseBytes(data)
	if !root.IsObject() {
		return Event{}, &Rejection{Message: "the event is not a JSON object"}
	}
	return p.ReadObject(root)
}

// CheckJSON rejects data that is not one JSON value of at most maxDepth levels. what names it in the message.
func CheckJSON(data []byte, what string) *Rejection {
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

// ReadObject decodes an event that is a valid JSON object.
func (p *Parser) ReadObject(object gjson.Result) (Event, *Rejection) {
	m := make(members, 4)
	twice := ""
	var unknown []string
	object.ForEach(func(key, value gjson.Result) bool {
		name := key.String()
		switch read, known := p.read[name]; {
		case read:
			if _, seen := m[name]; seen {
				twice = name
			}
			m[name] = value
		case !known && len(unknown) < maxUnknown:
			unknown = append(unknown, strings.ToValidUTF8(name[:min(len(name), maxUnknownBytes)], ""))
		}
		return true
	})
	for name, value := range m {
		if value.Type == gjson.Null {
			delete(m, name)
		}
	}
	if inner := m[memberValue]; inner.IsObject() && len(m) == 1 && !inner.Get(memberValue).IsObject() {
		return p.ReadObject(inner)
	}
	format, rejection := p.formatOf(m)
	var event Event
	switch {
	case twice != "":
		rejection = Reject(twice, "occurs twice")
	case rejection != nil:
	case format == nil:
		event, rejection = m.maestro()
	default:
		event, rejection = m.change(format)
	}
	if rejection != nil {
		rejection.Organization, rejection.RecordID = m.readable(format)
		return Event{}, rejection
	}
	event.Unknown = unknown
	return event, nil
}

// Format returns the format of an event that is not of FormatMaestro.
func (p *Parser) Format(e Event) core.EventFormat {
	return p.formats[slices.IndexFunc(p.formats, func(f core.EventFormat) bool { return f.Name == e.Format })]
}

// formatOf returns the format of an event's members, nil for FormatMaestro.
func (p *Parser) formatOf(m members) (*core.EventFormat, *Rejection) {
	if m.has(MemberRepository) {
		return nil, nil
	}
	names := []string{MemberRepository}
	for i, f := range p.formats {
		if m.has(f.RecordID) {
			return &p.formats[i], nil
		}
		names = append(names, f.RecordID)
	}
	last := len(names) - 1
	return nil, &Rejection{Message: "the event has none of the members " + strings.Join(names[:last], ", ") + " and " + names[last]}
}

func (m members) maestro() (Event, *Rejection) {
	e := Event{Format: FormatMaestro}
	var rejection *Rejection
	m.coerce(MemberRepository, memberStudy, memberAnalysis)
	if e.Repository, rejection = m.key(MemberRepository); rejection != nil {
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
			return Event{}, Reject(name, "must be true or false")
		case removal != "" && e.Remove != m[name].Bool():
			return Event{}, Reject(name, "contradicts "+removal)
		default:
			removal, e.Remove = name, m[name].Bool()
		}
	}
	switch {
	case e.RecordID != "" && e.Organization == "":
		return Event{}, Reject(memberStudy, "is missing: "+memberAnalysis+" needs it")
	case e.Remove && e.RecordID == "":
		return Event{}, Reject(memberAnalysis, "is missing: "+removal+" exists for one record only")
	case e.Scope() == core.ScopeOrganization:
		if rejection = runnable(memberStudy, e.Organization); rejection != nil {
			return Event{}, rejection
		}
	}
	return e, nil
}

// coerce converts ids as Maestro does: an integer to a string of its digits, and an empty studyId or analysisId to an absent one.
func (m members) coerce(names ...string) {
	for _, name := range names {
		switch value := m[name]; {
		case value.Type == gjson.Number && !strings.ContainsAny(value.Raw, ".eE"):
			m[name] = gjson.Result{Type: gjson.String, Str: value.Raw}
		case value.Type == gjson.String && value.Str == "" && name != MemberRepository:
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

// change decodes an event of a changed record.
func (m members) change(format *core.EventFormat) (Event, *Rejection) {
	e := Event{Format: format.Name}
	var rejection *Rejection
	if e.RecordID, rejection = m.key(format.RecordID); rejection != nil {
		return Event{}, rejection
	}
	if e.Organization, rejection = m.key(format.Organization); rejection != nil {
		return Event{}, rejection
	}
	for _, server := range format.Servers {
		if e.Servers, rejection = m.appendServer(e.Servers, server); rejection != nil {
			return Event{}, rejection
		}
	}
	if format.Entity == "" {
		return e, nil
	}
	// A change of a record that is part of another one may run the organization.
	if rejection = runnable(format.Organization, e.Organization); rejection != nil {
		return Event{}, rejection
	}
	// The action decides nothing, as a late event must not: it only says that no request will return the record's own fields.
	if entity := m[format.Entity]; entity.Type == gjson.String && m[format.Action].String() == format.ActionDelete {
		e.Deleted = core.NewPart(strings.Clone(entity.String()), []byte(m[format.Data].Raw))
	}
	return e, nil
}

// appendServer appends the value of a member, if the event has it, to servers.
func (m members) appendServer(servers []string, member core.EventMember) ([]string, *Rejection) {
	switch value, ok := m[member.Name]; {
	case !ok:
		return servers, nil
	case member.OrNumber && value.Type == gjson.Number:
		return append(servers, strings.Clone(value.Raw)), nil
	case member.OrNumber && value.Type != gjson.String:
		return nil, Reject(member.Name, "must be a number or a string")
	}
	server, rejection := m.key(member.Name)
	if rejection != nil {
		return nil, rejection
	}
	return append(servers, server), nil
}

func (m members) has(name string) bool {
	_, ok := m[name]
	return ok
}

// key returns a required member that becomes part of a Request.
func (m members) key(name string) (string, *Rejection) {
	value, ok := m[name]
	if !ok {
		return "", Reject(name, "is missing")
	}
	if value.Type != gjson.String {
		return "", Reject(name, "must be a string")
	}
	if err := core.ValidKey(name, value.Str); err != nil {
		return "", &Rejection{Member: name, Message: core.MessageOf(err)}
	}
	// The value may share the memory of the whole event.
	return strings.Clone(value.Str), nil
}

// readable returns the organization and the record of a rejected event, each "" if it cannot be decoded. format is nil for
// FormatMaestro and for an unknown format.
func (m members) readable(format *core.EventFormat) (organization, recordID string) {
	text := func(name string) string {
		if v := m[name]; v.Type == gjson.String {
			return strings.ToValidUTF8(v.Str, "\uFFFD")
		}
		return ""
	}
	if format != nil {
		return text(format.Organization), text(format.RecordID)
	}
	return text(memberStudy), text(memberAnalysis)
}

// Reject returns a Rejection of one member.
func Reject(member, problem string) *Rejection {
	return &Rejection{Member: member, Message: member + " " + problem}
}
