package dataset

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// GenerateStudies returns n study ids, such as "PANC-CA"; the same for the same n.
func GenerateStudies(n int) []string {
	sites := []string{"PANC", "LIVR", "BRST", "COLO", "LUNG", "OVAR", "PROS", "BRAI", "GAST", "KIDN"}
	countries := []string{"CA", "JP", "DE", "UK", "AU", "FR", "US", "KR", "IT", "ES"}
	studies := make([]string, n)
	for i := range studies {
		studies[i] = sites[i%len(sites)] + "-" + countries[(i+i/len(sites))%len(countries)]
		if round := i / (len(sites) * len(countries)); round > 0 {
			studies[i] += strconv.Itoa(round + 1)
		}
	}
	return studies
}

// GenerateAnalyses returns n published analyses of a study, each of about 2 KB and of one of three analysis types. The same seed, study
// and n return the same bytes; ids are distinct across studies and seeds.
func GenerateAnalyses(seed uint64, study string, n int) []Analysis {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(study)) // never fails
	g := &generator{rng: rand.New(rand.NewPCG(seed, sum.Sum64())), seed: sum.Sum64(), study: study, site: siteOf(study)}
	analyses := make([]Analysis, n)
	for i := range analyses {
		analyses[i] = g.analysis(i)
	}
	return analyses
}

// generator appends JSON without encoding/json: benchmarks generate a hundred thousand analyses.
type generator struct {
	rng   *rand.Rand
	seed  uint64
	study string
	site  string
	buf   []byte
}

// siteOf returns the organ of a study of GenerateStudies.
func siteOf(study string) string {
	sites := map[string]string{
		"PANC": "Pancreas", "LIVR": "Liver", "BRST": "Breast", "COLO": "Colon", "LUNG": "Bronchus and lung", "OVAR": "Ovary",
		"PROS": "Prostate gland", "BRAI": "Brain", "GAST": "Stomach", "KIDN": "Kidney",
	}
	prefix, _, _ := strings.Cut(study, "-")
	if site := sites[prefix]; site != "" {
		return site
	}
	return "Unknown primary site"
}

// analysisKind is the vocabulary of one analysis type.
type analysisKind struct {
	name, dataCategory string
	version            int
	fileTypes          []string
	dataTypes          []string
	strategies         []string
	workflows          []string
}

func (g *generator) kind() analysisKind {
	switch g.rng.IntN(10) {
	case 0, 1, 2:
		return analysisKind{
			name: "sequenceExperiment", dataCategory: "Sequencing Reads", version: 2, fileTypes: []string{"FASTQ", "BAM"},
			dataTypes: []string{"Submitted Reads"}, strategies: []string{"WGS", "WXS", "RNA-Seq", "Targeted-Seq"},
		}
	case 3, 4, 5:
		return analysisKind{
			name: "sequenceAlignment", dataCategory: "Sequencing Reads", version: 3, fileTypes: []string{"CRAM", "CRAI"},
			dataTypes: []string{"Aligned Reads", "Aligned Reads Index"}, strategies: []string{"WGS", "WXS", "RNA-Seq"},
			workflows: []string{"DNA Alignment BWA-MEM", "RNA Alignment STAR", "DNA Alignment Minimap"},
		}
	default:
		return analysisKind{
			name: "variantCall", dataCategory: "Simple Nucleotide Variation", version: 1, fileTypes: []string{"VCF", "TBI"},
			dataTypes: []string{"Raw SNV Calls", "Raw InDel Calls", "Raw SV Calls", "Raw CNV Calls"}, strategies: []string{"WGS", "WXS"},
			workflows: []string{"Somatic Caller Kestrel", "Somatic Caller Heron", "Germline Caller Wren"},
		}
	}
}

// analysis generates one analysis.
func (g *generator) analysis(i int) Analysis {
	kind := g.kind()
	id := g.uuid()
	strategy := pick(g.rng, kind.strategies)
	first := time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(g.rng.Int64N(int64(5 * 365 * 24 * time.Hour))))
	published := first.Add(time.Duration(g.rng.Int64N(int64(90 * 24 * time.Hour))))
	g.buf = g.buf[:0]
	g.raw(`{"analysisId":`).text(id).raw(`,"studyId":`).text(g.study).raw(`,"analysisState":"PUBLISHED","analysisType":{"name":`)
	g.text(kind.name).raw(`,"version":`).number(kind.version).raw(`},"createdAt":`).stamp(first)
	g.raw(`,"firstPublishedAt":`).stamp(first.Add(time.Hour)).raw(`,"publishedAt":`).stamp(published)
	g.raw(`,"updatedAt":`).stamp(published)
	g.raw(`,"analysisStateHistory":[{"initialState":"UNPUBLISHED","updatedState":"PUBLISHED","updatedAt":`).stamp(published).raw(`}]`)
	g.samples(i)
	g.files(id, kind, strategy)
	g.experiment(strategy, first)
	if kind.workflows != nil {
		g.workflow(kind)
	}
	g.raw(`}`)
	return Analysis{ID: id, Study: g.study, State: "PUBLISHED", Body: append([]byte(nil), g.buf...)}
}

// samples appends the sample with its specimen and donor. Some analyses compare a tumour with a normal sample; a donor
// has several analyses.
func (g *generator) samples(i int) {
	donor := i / 3
	g.raw(`,"samples":[`)
	count := 1 + g.rng.IntN(8)/7
	for s := range count {
		if s > 0 {
			g.raw(`,`)
		}
		normal := s > 0 || g.rng.IntN(5) == 0
		sample := 100000 + i*2 + s
		g.raw(`{"sampleId":"SA`).number(sample).raw(`","submitterSampleId":"`).raw(g.study).raw(`-s`).number(sample)
		g.raw(`","sampleType":`).text(pick(g.rng, []string{"Total DNA", "Amplified DNA", "Total RNA", "ctDNA"}))
		g.raw(`,"matchedNormalSubmitterSampleId":`)
		if normal {
			g.raw(`null`)
		} else {
			g.raw(`"`).raw(g.study).raw(`-n`).number(sample).raw(`"`)
		}
		g.specimen(donor, sample, normal)
		g.donor(donor)
		g.raw(`}`)
	}
	g.raw(`]`)
}

func (g *generator) specimen(donor, sample int, normal bool) {
	kind, designation := "Primary tumour", "Tumour"
	if normal {
		kind, designation = "Normal", "Normal"
	} else if g.rng.IntN(4) == 0 {
		kind = pick(g.rng, []string{"Metastatic tumour", "Recurrent tumour", "Xenograft - derived from primary tumour"})
	}
	g.raw(`,"specimen":{"specimenId":"SP`).number(sample / 2).raw(`","submitterSpecimenId":"`).raw(g.study).raw(`-sp`).number(sample / 2)
	g.raw(`","donorId":"DO`).number(donor).raw(`","specimenType":`).text(kind).raw(`,"tumourNormalDesignation":`).text(designation)
	g.raw(`,"specimenTissueSource":`).text(pick(g.rng, []string{"Solid tissue", "Blood derived", "Saliva", "Buccal cell", "Bone marrow"})).raw(`}`)
}

func (g *generator) donor(donor int) {
	// A donor must be the same in all its analyses, so its values depend on its number.
	facts := rand.New(rand.NewPCG(uint64(donor), g.seed))
	g.raw(`,"donor":{"donorId":"DO`).number(donor).raw(`","submitterDonorId":"`).raw(g.study).raw(`-d`).number(donor)
	g.raw(`","gender":`).text(pick(facts, []string{"Female", "Male", "Other"})).raw(`,"info":{"primarySite":`)
	g.text(g.site).raw(`,"ageAtDiagnosis":`).number(18 + facts.IntN(72)).raw(`,"vitalStatus":`)
	g.text(pick(facts, []string{"Alive", "Deceased", "Unknown"})).raw(`,"clinic":`)
	g.text(pick(facts, []string{"Hôpital Saint-Étienne", "Universitätsklinikum Tübingen", "国立病院機構", "Toronto General", "São Rafael", "Clinic “North” β"}))
	g.raw(`}}`)
}

func (g *generator) files(id string, kind analysisKind, strategy string) {
	g.raw(`,"files":[`)
	access := pick(g.rng, []string{"controlled", "controlled", "controlled", "open"})
	for f := range 2 {
		if f > 0 {
			g.raw(`,`)
		}
		fileType := kind.fileTypes[f%len(kind.fileTypes)]
		size := int64(2000 + g.rng.IntN(900000))
		if f == 0 {
			size *= int64(1 + g.rng.IntN(200000))
		}
		g.raw(`{"objectId":`).text(g.uuid()).raw(`,"studyId":`).text(g.study).raw(`,"analysisId":`).text(id)
		g.raw(`,"fileName":"`).raw(id).raw(`.`).raw(kind.name).raw(`.`).number(f).raw(`.`).raw(fileType).raw(`"`)
		g.raw(`,"fileSize":`).number(int(size)).raw(`,"fileType":`).text(fileType).raw(`,"fileMd5sum":"`).hex(16)
		g.raw(`","fileAccess":`).text(access).raw(`,"dataType":`).text(kind.dataTypes[g.rng.IntN(len(kind.dataTypes))])
		g.raw(`,"info":{"dataCategory":`).text(kind.dataCategory).raw(`,"analysisTools":[`)
		g.text(pick(g.rng, []string{"samtools", "kestrel", "heron", "fastp", "wren"})).raw(`],"strategy":`).text(strategy).raw(`}}`)
	}
	g.raw(`]`)
}

func (g *generator) experiment(strategy string, first time.Time) {
	models := map[string][]string{
		"ILLUMINA": {"NovaSeq 6000", "HiSeq X Ten", "HiSeq 2500"}, "OXFORD_NANOPORE": {"PromethION", "GridION"},
		"PACBIO_SMRT": {"Sequel II", "Revio"},
	}
	platform := pick(g.rng, []string{"ILLUMINA", "ILLUMINA", "ILLUMINA", "OXFORD_NANOPORE", "PACBIO_SMRT"})
	g.raw(`,"experiment":{"platform":`).text(platform).raw(`,"platformModel":`).text(pick(g.rng, models[platform]))
	g.raw(`,"experimentalStrategy":`).text(strategy).raw(`,"sequencingCenter":`)
	g.text(pick(g.rng, []string{"OICR", "RIKEN", "DKFZ", "Sanger", "BGI", "Génopole"}))
	g.raw(`,"sequencingDate":"`).raw(first.Add(-30 * 24 * time.Hour).Format(time.DateOnly)).raw(`","coverage":`)
	g.buf = strconv.AppendFloat(g.buf, float64(g.rng.IntN(12000))/100, 'f', 2, 64)
	g.raw(`,"readLength":`).number(50 * (1 + g.rng.IntN(5))).raw(`,"pairedEnd":`)
	g.buf = strconv.AppendBool(g.buf, g.rng.IntN(4) > 0)
	g.raw(`,"submitterExperimentId":"EX-`).number(g.rng.IntN(1_000_000)).raw(`"}`)
}

func (g *generator) workflow(kind analysisKind) {
	g.raw(`,"workflow":{"workflowName":`).text(pick(g.rng, kind.workflows)).raw(`,"workflowVersion":"`)
	g.number(1 + g.rng.IntN(3)).raw(`.`).number(g.rng.IntN(10)).raw(`.`).number(g.rng.IntN(5)).raw(`","genomeBuild":`)
	g.text(pick(g.rng, []string{"GRCh38", "GRCh38_hla_decoy_ebv", "GRCh37"})).raw(`,"runId":`).text(g.uuid())
	g.raw(`,"inputs":[{"analysisType":"sequenceAlignment","tumourAnalysisId":`).text(g.uuid()).raw(`,"normalAnalysisId":`).text(g.uuid()).raw(`}]}`)
}

func (g *generator) raw(s string) *generator {
	g.buf = append(g.buf, s...)
	return g
}

// text appends a JSON string. The vocabulary and the ids of studies contain no control characters.
func (g *generator) text(s string) *generator {
	g.buf = append(g.buf, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			g.buf = append(g.buf, '\\')
		}
		g.buf = append(g.buf, s[i])
	}
	g.buf = append(g.buf, '"')
	return g
}

func (g *generator) number(n int) *generator {
	g.buf = strconv.AppendInt(g.buf, int64(n), 10)
	return g
}

// stamp appends a time in Song's format: without a zone, with microseconds.
func (g *generator) stamp(t time.Time) *generator {
	g.buf = append(g.buf, '"')
	g.buf = t.AppendFormat(g.buf, "2006-01-02T15:04:05.000000")
	g.buf = append(g.buf, '"')
	return g
}

// hex appends n random bytes.
func (g *generator) hex(n int) *generator {
	for range n {
		g.buf = append(g.buf, "0123456789abcdef"[g.rng.IntN(16)], "0123456789abcdef"[g.rng.IntN(16)])
	}
	return g
}

// uuid returns a random UUID (RFC 9562, version 4).
func (g *generator) uuid() string {
	a, b := g.rng.Uint64(), g.rng.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, 0x8000|b>>48&0x3fff, b&0xffffffffffff)
}

func pick(rng *rand.Rand, words []string) string { return words[rng.IntN(len(words))] }
