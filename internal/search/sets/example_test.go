package sets_test

import (
	"context"
	"fmt"
	"os"

	"tutti/internal/core"
	"tutti/internal/search/sets"
	"tutti/internal/store"
)

func ExampleService() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sets")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(ctx, store.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close(ctx)
	s, err := sets.New(db, sets.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	saved, err := s.Save(ctx, core.SavedSet{Owner: "key:1", Path: "donorId"}, []string{"DO1", "DO2"})
	if err != nil {
		fmt.Println(err)
		return
	}
	members, err := s.Members(ctx, "key:1", saved.ID)
	fmt.Println(members, err)
	_, err = s.Members(ctx, "key:2", saved.ID)
	fmt.Println(core.CodeOf(err))
	// Output:
	// [DO1 DO2] <nil>
	// not_found
}
