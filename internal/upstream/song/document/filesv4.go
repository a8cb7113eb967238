package document

import (
	"slices"
	"strings"

	"tutti/internal/core"
)

const memberInfo = "info"

// FilesV4 is like Files for the documents of Maestro 4. They contain the donors of the samples with their specimens, and the index of
// a file as file.index_file. Index files and XML files have no documents of their own. The members of an object named info move into
// the object that contains it, except those whose names it already has.
func FilesV4(rec core.Record, block []byte, each func(id string, document []byte) error) error {
	record := parse(rec.Body)
	all, err := files(record)
	if err != nil {
		return err
	}
	analysis := analysisV4(record).appendTo(nil)
	donors, err := donorsOf(record)
	if err != nil {
		return err
	}
	var buf, inner []byte
	for _, f := range all {
		name := f.members.text("fileName")
		if isIndex(name) || hasExtension(name, "xml") {
			continue
		}
		described := describe(f)
		if index := indexOf(all, name); index != nil {
			described = append(described, member{"index_file", indexV4(*index).appendTo(nil)})
		}
		info := parse(f.members.get(memberInfo))
		inner = described.with(info).appendTo(inner[:0])
		doc := append(ofFile(f, rec), member{"file", inner}, member{"analysis", analysis}, member{memberRepositories, block})
		if donors != nil {
			doc = append(doc, member{"donors", donors})
		}
		buf = doc.with(info).appendTo(buf[:0])
		if err := each(f.id, buf); err != nil {
			return err
		}
	}
	return nil
}

// describe returns the members that the objects file and index_file have in common, under Maestro 4's names.
func describe(f file) object {
	return f.members.renamed("fileName", "name", "fileSize", "size", "fileMd5sum", "md5sum", "dataType", "data_type")
}

// analysisV4 returns the members of an analysis: those of Song's base schema under Maestro's names, the others under their own.
func analysisV4(record object) object {
	own := record.renamed("analysisId", "analysis_id", "analysisState", "analysis_state", "updatedAt", "updated_at",
		"firstPublishedAt", "first_published_at", "publishedAt", "published_at", "experiment", "experiment")
	own = append(own, parse(record.get("analysisType")).renamed("name", "analysis_type", "version", "analysis_version")...)
	return own.with(record.without("analysisId", "analysisState", "updatedAt", "firstPublishedAt", "publishedAt", "analysisType",
		memberStudy, memberFiles, "samples", "songServerId"))
}

// indexV4 returns the members of the index of a file.
func indexV4(f file) object {
	name := f.members.text("fileName")
	kind := strings.ToUpper(name[strings.LastIndexByte(name, '.')+1:])
	own := append(object{{"object_id", f.members.get("objectId")}, {"file_type", []byte(`"` + kind + `"`)}}, describe(f)...)
	return own.with(parse(f.members.get(memberInfo)))
}

// indexOf returns the file that is the index of the named file, such as a.bam.bai of a.bam, nil if there is none.
func indexOf(all []file, name string) *file {
	var extensions []string
	switch {
	case hasExtension(name, "bam"):
		extensions = []string{".bai"}
	case hasExtension(name, "cram"):
		extensions = []string{".crai"}
	case hasExtension(name, "vcf"):
		extensions = []string{".tbi", ".idx", ".tcg"}
	}
	for _, extension := range extensions {
		if i := slices.IndexFunc(all, func(f file) bool {
			return strings.EqualFold(f.members.text("fileName"), name+extension)
		}); i >= 0 {
			return &all[i]
		}
	}
	return nil
}

// isIndex reports whether a file is the index of another file.
func isIndex(name string) bool {
	return slices.ContainsFunc([]string{"bai", "crai", "tbi", "idx"}, func(extension string) bool { return hasExtension(name, extension) })
}

// hasExtension reports whether a name ends in an extension, or in one followed by the extension of a compressed file.
func hasExtension(name, extension string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"", ".gz", ".zip", ".b2zip"}, func(compressed string) bool {
		return strings.HasSuffix(name, extension+compressed)
	})
}

// group is a donor with its specimens in groups, or a specimen with its samples.
type group struct {
	id      string
	members object
	groups  []*group
	samples []object
}

// child returns the group with an id in g.groups. If there is none, it adds one with the given members.
func (g *group) child(id string, members func() object) *group {
	if i := slices.IndexFunc(g.groups, func(c *group) bool { return c.id == id }); i >= 0 {
		return g.groups[i]
	}
	c := &group{id: id, members: members()}
	g.groups = append(g.groups, c)
	return c
}

// donorsOf returns the donors of an analysis as a JSON array, each with its specimens and their samples; nil without samples.
func donorsOf(record object) ([]byte, error) {
	samples, ok := list(record.get("samples"))
	if !ok {
		return nil, core.NewError(core.CodeInvalid, "samples is not a list")
	}
	if len(samples) == 0 {
		return nil, nil
	}
	var root group
	for _, raw := range samples {
		sample := parse(raw)
		donor, specimen := parse(sample.get("donor")), parse(sample.get("specimen"))
		owner := root.child(donor.text("donorId"), func() object {
			return donor.renamed("donorId", "donor_id", "submitterDonorId", "submitter_donor_id", "gender", "gender").
				with(parse(donor.get(memberInfo)))
		}).child(specimen.text("specimenId"), func() object {
			return specimen.renamed("specimenId", "specimen_id", "submitterSpecimenId", "submitter_specimen_id", "specimenType", "specimen_type",
				"specimenTissueSource", "specimen_tissue_source", "tumourNormalDesignation", "tumour_normal_designation").
				with(parse(specimen.get(memberInfo)))
		})
		owner.samples = append(owner.samples, sample.renamed("sampleId", "sample_id", "submitterSampleId", "submitter_sample_id",
			"sampleType", "sample_type", "matchedNormalSubmitterSampleId", "matched_normal_submitter_sample_id").
			with(parse(sample.get(memberInfo))))
	}
	donors := make([]object, len(root.groups))
	for i, donor := range root.groups {
		specimens := make([]object, len(donor.groups))
		for n, specimen := range donor.groups {
			specimens[n] = object{{"samples", appendList(nil, specimen.samples)}}.with(specimen.members)
		}
		donors[i] = object{{"specimens", appendList(nil, specimens)}}.with(donor.members)
	}
	return appendList(nil, donors), nil
}
