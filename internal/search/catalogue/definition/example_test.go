package definition_test

import (
	"fmt"

	"tutti/internal/search/catalogue/definition"
)

func ExampleLoad() {
	set, err := definition.Load("testdata/multi", definition.Options{Reserved: []string{"jobs", "introspection"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range set.Definitions {
		if d.Err != nil {
			fmt.Printf("%s failed: %s; %s\n", d.ID, d.Err.Message, d.Err.Hint)
			continue
		}
		fmt.Printf("%s searches %s for the type %s\n", d.ID, d.Index, d.DocumentType)
	}
	// Output:
	// analyses searches analyses for the type analysis
	// donors searches donors for the type donor-record
	// mutations failed: mutations/extended.json is not valid JSON at line 5, column 2: invalid character ']' looking for beginning of value; remove the comma before it
}
