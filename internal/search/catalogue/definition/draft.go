package definition

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"tutti/internal/core"
)

const defaultMaxAliases = 15

// draft is a catalogue that is being read.
type draft struct {
	findings
	definition Definition
	// name is the folder's name, path its path in the file system.
	name, path string
	top        bool
	// files are the names of its JSON files, sorted; sources counts those read, rules the access rules.
	files          []string
	sources, rules int
	// strays are the names of other entries that may be a misnamed access.json.
	strays []string
	// configuration is the merged content of the files.
	configuration *node
	// broken is set if a file could not be read, so that the configuration is incomplete.
	broken bool
	// wantedID is the configured ID, idSource where it is configured.
	wantedID, idSource string
}

// file returns the name of a file for messages: relative to the folder of all catalogues.
func (d *draft) file(name string) string {
	if d.top {
		return printable(name)
	}
	return printable(d.name) + "/" + printable(name)
}

// set returns the member of a name if it has a value, otherwise nil.
func (d *draft) set(name string) *node {
	n := d.configuration.member(name)
	if n == nil || n.absent() {
		return nil
	}
	return n
}

// build validates the merged files and fills the definition.
func (d *draft) build(opts Options) {
	check(d.configuration, configuration(), "", &d.findings)
	def := &d.definition
	def.Description = d.set("description").string()
	def.DataRelease = d.set("dataRelease").string()
	def.NestingPrefix = d.set("nestingPrefix").string()
	def.DisableDownloads = isSet(d.set("disableDownloads"))
	def.DisableFilters = isSet(d.set("disableFilters"))
	def.EnableSets = isSet(d.set("enableSets"))
	def.GraphQLIntrospection = introspection(d.set("disableGraphQLIntrospection").flag(), opts)
	def.MaxAliases, def.MaxDepth = defaultMaxAliases, 0
	if most := d.set("maxAliases").number(); most != nil {
		def.MaxAliases = int(*most)
	}
	if most := d.set("maxDepth").number(); most != nil {
		def.MaxDepth = int(*most)
	}
	def.Facets, def.Table, def.Matchbox = d.set("facets").raw(), d.set("table").raw(), d.set("matchbox").raw()
	def.Downloads, def.Charts, def.Network = d.set("downloads").raw(), d.set("charts").raw(), d.set("network").raw()
	d.requireNames()
	d.checkPrefix()
	d.extend()
	d.checkFieldNames()
	d.checkNodes()
	d.identity()
}

func isSet(n *node) bool {
	is := n.flag()
	return is != nil && *is
}

// introspection reports whether GraphQL introspection is on (CONTRACT section 3): it is off if the catalogue or the server
// disables it, and in production if neither configures it.
func introspection(disabled *bool, opts Options) bool {
	if disabled == nil && opts.DisableGraphQLIntrospection == nil {
		return !opts.Production
	}
	for _, word := range []*bool{disabled, opts.DisableGraphQLIntrospection} {
		if word != nil && *word {
			return false
		}
	}
	return true
}

// requireNames checks the two required keys.
func (d *draft) requireNames() {
	def := &d.definition
	documentType, index := d.set("documentType"), d.set("esIndex")
	def.DocumentType, def.Index = documentType.string(), index.string()
	if !d.broken {
		d.requirePresent()
	}
	if documentType != nil {
		d.checkDocumentType(documentType)
	}
	if index != nil && !isIndexName(def.Index) {
		d.failAt("/esIndex", index.file, quoted(def.Index)+" is not the name of an index or an alias",
			`write it in lower case, in 240 bytes at most, with none of \ / * ? " < > | , # : % or space, and no . - _ or + at the start`)
	}
}

func (d *draft) requirePresent() {
	if d.sources == 0 {
		if d.failed == 0 {
			d.fail(d.label(), "contains only access.json", "add base.json with documentType and esIndex")
		}
		return
	}
	var missing, hints []string
	for _, k := range []struct{ name, hint string }{
		{"documentType", `"documentType": "<what a document of it is called>"`},
		{"esIndex", `"esIndex": "<index or alias>"`},
	} {
		if d.missing(k.name) {
			missing, hints = append(missing, k.name), append(hints, k.hint)
		}
	}
	if len(missing) == 0 {
		return
	}
	what := "does not set " + strings.Join(missing, " and ")
	if !slices.ContainsFunc(d.files, func(name string) bool { return isFile(name, baseFile) }) {
		what = "is not there, and no other file sets " + strings.Join(missing, " and ")
	}
	d.fail(d.file(baseFile), what, "add "+strings.Join(hints, " and ")+" to it")
}

// missing reports whether a key has no value; a value of a wrong type has its own violation.
func (d *draft) missing(name string) bool {
	if d.set(name) != nil {
		return false
	}
	for _, f := range d.violations {
		if f.pointer == "/"+name || name == "esIndex" && f.pointer == "/index" {
			return false
		}
	}
	return true
}

// checkDocumentType rejects names that GraphQL cannot represent. Characters other than letters, digits and underscores become
// underscores, as in Arranger.
func (d *draft) checkDocumentType(n *node) {
	name := graphQLName(n.text)
	switch {
	case strings.HasPrefix(name, "__"):
		d.failAt("/documentType", n.file, quoted(n.text)+" would begin with __ in GraphQL, which reserves such names",
			"begin it with a letter")
	case name == "sets" || name == "network":
		d.failAt("/documentType", n.file, quoted(n.text)+" is a reserved field of every GraphQL endpoint", "choose another name")
	case name != n.text:
		d.warnAt("/documentType", n.file, quoted(n.text)+" is not a GraphQL name, and becomes "+printable(name))
	}
}

// graphQLName converts a string to a GraphQL name of letters, digits and underscores.
func graphQLName(text string) string {
	name := []byte(nil)
	for i, r := range []rune(text) {
		isDigit := r >= '0' && r <= '9'
		if i == 0 && isDigit {
			name = append(name, '_')
		}
		if isDigit || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			name = append(name, byte(r))
		} else {
			name = append(name, '_')
		}
	}
	return string(name)
}

func (d *draft) checkPrefix() {
	n := d.set("nestingPrefix")
	if n != nil && strings.Contains("."+n.text+".", "..") {
		d.failAt("/nestingPrefix", n.file, quoted(n.text)+" is not a dotted path", `write it like "data" or "envelope.payload"`)
	}
}

// extend reads the extended fields. Of two for one field the later one applies, at the position of the earlier.
func (d *draft) extend() {
	n := d.set("extended")
	if n == nil || n.kind != kindList || len(n.items) == 0 {
		return
	}
	at := map[string]int{}
	d.definition.Extended = make([]ExtendedField, 0, len(n.items))
	for i, item := range n.items {
		field := extendedField(item)
		if field.FieldName == "" {
			d.failAt(belowIndex("/extended", i), item.file, "needs fieldName", "add the dotted path of the field as fieldName")
			continue
		}
		if before, is := at[field.FieldName]; is {
			d.warnAt(below(belowIndex("/extended", i), "fieldName"), item.file,
				quoted(field.FieldName)+" is described twice: the later one applies")
			d.definition.Extended[before] = field
			continue
		}
		at[field.FieldName] = len(d.definition.Extended)
		d.definition.Extended = append(d.definition.Extended, field)
	}
}

// checkFieldNames warns of facets, columns and sort keys without a field, which clients omit.
func (d *draft) checkFieldNames() {
	for _, place := range [][]string{{"facets", "aggregations"}, {"table", "columns"}, {"table", "defaultSorting"}} {
		n := d.set(place[0]).member(place[1])
		if n == nil {
			continue
		}
		for i, item := range n.items {
			if item.member("fieldName").string() == "" {
				d.warnAt(belowIndex("/"+strings.Join(place, "/"), i), item.file, "has no fieldName and is not shown")
			}
		}
	}
}

// checkNodes warns of remote nodes that cannot be queried, such as that of Arranger's template.
func (d *draft) checkNodes() {
	n := d.set("network").member("remoteNodes")
	if n == nil {
		return
	}
	for i, item := range n.items {
		for _, name := range []string{"displayName", "documentType", "graphqlUrl"} {
			if item.member(name).string() == "" {
				d.warnAt(belowIndex("/network/remoteNodes", i), item.file, "has no "+name+" and cannot be queried")
				break
			}
		}
	}
}

// identity finds the configured ID of the folder.
func (d *draft) identity() {
	id := d.set("catalogId")
	pointer := ""
	switch base := strings.ToLower(d.name); {
	case id.string() != "":
		pointer, d.wantedID, d.idSource = "/catalogId", id.text, "/catalogId in "+id.file
	case d.top && (base == "config" || base == "configs") && d.definition.DocumentType != "":
		d.wantedID, d.idSource = d.definition.DocumentType, "/documentType in "+d.configuration.member("documentType").file+", which is the id here,"
	default:
		d.wantedID, d.idSource = d.name, "the name of the folder "+printable(d.name)
	}
	if err := core.ValidID(d.idSource, d.wantedID); err != nil {
		d.addViolation(violation{pointer, core.MessageOf(err), "set a short, readable catalogId in " + d.file(baseFile)})
		d.wantedID = ""
	}
}

// finish returns the definition.
func (d *draft) finish() Definition {
	d.definition.Folder = d.name
	d.definition.Err = d.err()
	d.definition.Warnings = d.texts()
	return d.definition
}

// label returns the name of the folder for messages.
func (d *draft) label() string {
	if d.top {
		return "the top folder"
	}
	return printable(d.name)
}

// maxNamed is the maximum number of folders in a message.
const maxNamed = 5

// identify assigns each draft its ID and returns warnings about IDs. A draft gets its configured ID if that is known, not
// reserved for a route, and unique. Any other draft is listed as failed under its folder's name, with the suffix -2, -3 and so on
// if that is taken, so that a valid catalogue always keeps its ID.
func identify(drafts []*draft, reserved []string) []string {
	claims := map[string][]*draft{}
	for _, d := range drafts {
		if d.hasWantedID() {
			claims[d.wantedID] = append(claims[d.wantedID], d)
		}
	}
	taken := map[string]bool{}
	var left []*draft
	for _, d := range drafts {
		switch {
		case !d.hasWantedID():
		case slices.Contains(reserved, d.wantedID):
			d.rejectID(fmt.Sprintf("%s cannot be the id of the catalogue in %s, because it is the name of a server route: set another catalogId",
				quoted(d.wantedID), d.label()))
		case len(claims[d.wantedID]) > 1:
			d.rejectID(fmt.Sprintf("%s is the id of several catalogues, those in %s: give each its own catalogId",
				quoted(d.wantedID), labels(claims[d.wantedID])))
		default:
			d.definition.ID, taken[d.wantedID] = d.wantedID, true
			continue
		}
		left = append(left, d)
	}
	for _, d := range left {
		d.definition.ID = freeID(listableID(d.name), taken)
		taken[d.definition.ID] = true
	}
	return warnSimilarIDs(drafts)
}

// hasWantedID reports whether the configured ID is known. A folder that could not be read completely claims no ID.
func (d *draft) hasWantedID() bool { return d.wantedID != "" && !d.broken }

// rejectID makes the ID the first violation: it must be fixed in any case.
func (d *draft) rejectID(message string) {
	d.failed++
	d.violations = append([]violation{{"/catalogId", message, "set another catalogId in " + d.file(baseFile)}}, d.violations...)
}

func labels(drafts []*draft) string {
	names := make([]string, len(drafts))
	for i, d := range drafts {
		names[i] = d.label()
	}
	return joinNames(names)
}

// listableID converts a folder's name to a valid ID.
func listableID(name string) string {
	id := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return '_'
		}
		return r
	}, name)
	if id == "" || id == "." || id == ".." || id == "/" {
		return "catalogue"
	}
	return id
}

// freeID returns the ID, or the first free one with the suffix -2, -3 and so on.
func freeID(id string, taken map[string]bool) string {
	found := id
	for i := 2; taken[found]; i++ {
		found = fmt.Sprintf("%s-%d", id, i)
	}
	return found
}

// warnSimilarIDs warns of IDs that differ only in case: they are different, but easily confused.
func warnSimilarIDs(drafts []*draft) []string {
	same := map[string][]string{}
	for _, d := range drafts {
		key := strings.ToLower(d.definition.ID)
		same[key] = append(same[key], quoted(d.definition.ID))
	}
	var warnings []string
	for _, ids := range same {
		if len(ids) > 1 {
			slices.Sort(ids)
			warnings = append(warnings, "the ids "+strings.Join(ids, " and ")+" differ only in case")
		}
	}
	slices.Sort(warnings)
	return warnings
}

// maxIndexBytes leaves room for the suffix of an alias in an index name, which Elasticsearch limits to 255 bytes.
const maxIndexBytes = 240

// isIndexName reports whether both engines accept a name, and it is not an internal one with a leading dot.
func isIndexName(name string) bool {
	bad := func(r rune) bool {
		return strings.ContainsRune(`\/*?"<>|,#: %`, r) || !unicode.IsPrint(r) || unicode.IsUpper(r) || unicode.ToLower(r) != r
	}
	return name != "" && len(name) <= maxIndexBytes && !strings.ContainsAny(name[:1], "._+-") && !strings.ContainsFunc(name, bad)
}
