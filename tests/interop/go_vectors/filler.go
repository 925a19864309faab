package main

import (
	"math"
	"math/rand/v2"
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const versionField = "Version" // Of a message itself, not of its bytes.

var (
	tagsType = reflect.TypeFor[kmsg.Tags]()
	texts    = []string{"", "a", "topic-1", "größe", "日本", "\U0001F680"}
)

// filler sets all fields of a message to random values.
type filler struct {
	chance      *rand.Rand
	unknownTags bool // Whether to add tagged fields that Kafka does not have.
	full        bool // Whether nothing is to be null or empty.
}

func (f filler) fill(value reflect.Value) {
	switch value.Kind() {
	case reflect.Struct:
		f.fillStruct(value)
	case reflect.Pointer:
		if f.absent(4) {
			value.SetZero()
			return
		}
		value.Set(reflect.New(value.Type().Elem()))
		f.fill(value.Elem())
	case reflect.Slice:
		if f.absent(5) {
			value.SetZero()
			return
		}
		size := f.size(value.Type().Elem().Kind())
		value.Set(reflect.MakeSlice(value.Type(), size, size))
		for index := range size {
			f.fill(value.Index(index))
		}
	case reflect.Array:
		for index := range value.Len() {
			f.fill(value.Index(index))
		}
	case reflect.String:
		value.SetString(f.text())
	case reflect.Bool:
		value.SetBool(f.full || f.chance.IntN(2) == 0)
	case reflect.Float64:
		value.SetFloat(math.Ldexp(f.chance.Float64()-0.5, f.chance.IntN(60)))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		value.SetInt(f.integer(value.Type().Bits()))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		value.SetUint(f.chance.Uint64() >> (64 - value.Type().Bits()))
	default:
		fail("there is no random %v", value.Type())
	}
}

func (f filler) fillStruct(value reflect.Value) {
	for index := range value.NumField() {
		field := value.Field(index)
		switch {
		case field.Type() == tagsType:
			if f.unknownTags && f.chance.IntN(4) == 0 {
				f.addTags(field.Addr().Interface().(*kmsg.Tags))
			}
		case value.Type().Field(index).Name == versionField && isMessage(value):
		default:
			f.fill(field)
		}
	}
}

func (f filler) addTags(tags *kmsg.Tags) {
	for range 1 + f.chance.IntN(2) {
		content := make([]byte, f.chance.IntN(5))
		f.fill(reflect.ValueOf(&content).Elem())
		tags.Set(1000+f.chance.Uint32N(1<<20), content)
	}
}

func (f filler) absent(oneIn int) bool {
	return !f.full && f.chance.IntN(oneIn) == 0
}

func (f filler) size(element reflect.Kind) int {
	switch {
	case f.full && element == reflect.Uint8:
		return 4
	case f.full:
		return 1
	case element == reflect.Uint8 && f.chance.IntN(8) == 0:
		return 130 // Lengths above 127 take another byte.
	case element == reflect.Uint8:
		return f.chance.IntN(8)
	default:
		return f.chance.IntN(3)
	}
}

func (f filler) text() string {
	if f.full {
		letters := []byte("abcdefgh")
		f.chance.Shuffle(len(letters), func(i, j int) {
			letters[i], letters[j] = letters[j], letters[i]
		})
		return string(letters)
	}
	if f.chance.IntN(20) == 0 {
		return string(make([]byte, 130))
	}
	return texts[f.chance.IntN(len(texts))] + texts[f.chance.IntN(len(texts))]
}

func (f filler) integer(bits int) int64 {
	if !f.full && f.chance.IntN(4) == 0 {
		edges := []int64{0, -1, 1, math.MaxInt64 >> (64 - bits), math.MinInt64 >> (64 - bits)}
		return edges[f.chance.IntN(len(edges))]
	}
	return int64(f.chance.Uint64()) >> (64 - bits)
}

func isMessage(value reflect.Value) bool {
	_, is := value.Addr().Interface().(message)
	return is
}
