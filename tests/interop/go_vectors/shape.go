package main

import (
	"math/rand/v2"
	"reflect"
	"sort"
)

// shape says what of a message is in the bytes of one version. kmsg's structs hold the fields
// of all versions and do not tell, so each field is changed and the bytes are looked at.
type shape struct {
	flexible bool
	fields   map[string][]fieldShape // By the path of the struct, in the order of the wire.
}

type fieldShape struct {
	index    int
	nullable bool
	end      int // Where the field's bytes end, among those of the probe.
}

// probe finds the shape of a message.
func probe(make func() message) shape {
	made := make()
	root := reflect.ValueOf(made).Elem()
	filler{chance: rand.New(rand.NewPCG(1, 2)), full: true}.fill(root)
	found := shape{made.IsFlexible(), map[string][]fieldShape{}}
	p := prober{made, made.AppendTo(nil), found}
	p.structAt("", root)
	return found
}

type prober struct {
	made     message
	original []byte
	found    shape
}

func (p prober) structAt(path string, value reflect.Value) {
	for index := range value.NumField() {
		field, name := value.Field(index), value.Type().Field(index).Name
		if field.Type() == tagsType || name == versionField && isMessage(value) {
			continue
		}
		if seen, end := p.inBytes(field); seen {
			shape := fieldShape{index, p.nullable(field), end}
			p.found.fields[path] = append(p.found.fields[path], shape)
		}
		if inner := innermost(field); inner.Kind() == reflect.Struct {
			p.structAt(path+"."+name, inner)
		}
	}
	fields := p.found.fields[path]
	sort.SliceStable(fields, func(i, j int) bool { return fields[i].end < fields[j].end })
}

// inBytes changes a field and says whether the bytes changed, and up to where.
func (p prober) inBytes(field reflect.Value) (bool, int) {
	change(field)
	changed := p.made.AppendTo(nil)
	change(field)
	same := 0
	for same < len(changed) && same < len(p.original) &&
		changed[len(changed)-1-same] == p.original[len(p.original)-1-same] {
		same++
	}
	return same < len(p.original), len(p.original) - same
}

// nullable says whether null is written otherwise than an empty value.
func (p prober) nullable(field reflect.Value) bool {
	if field.Kind() != reflect.Pointer && field.Kind() != reflect.Slice {
		return false
	}
	kept := reflect.ValueOf(field.Interface())
	field.SetZero()
	null := string(p.made.AppendTo(nil))
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
	} else {
		field.Set(reflect.MakeSlice(field.Type(), 0, 0))
	}
	empty := string(p.made.AppendTo(nil))
	field.Set(kept)
	return null != empty
}

// change turns a value into another of the same length, and back when called again.
func change(value reflect.Value) {
	switch value.Kind() {
	case reflect.Struct:
		for index := range value.NumField() {
			if value.Field(index).Type() != tagsType {
				change(value.Field(index))
			}
		}
	case reflect.Pointer:
		change(value.Elem())
	case reflect.Slice, reflect.Array:
		for index := range value.Len() {
			change(value.Index(index))
		}
	case reflect.String:
		letters := []byte(value.String())
		for index := range letters {
			letters[index] ^= 1
		}
		value.SetString(string(letters))
	case reflect.Bool:
		value.SetBool(!value.Bool())
	case reflect.Float64:
		value.SetFloat(-value.Float())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		value.SetUint(value.Uint() ^ (1<<value.Type().Bits() - 1))
	default:
		value.SetInt(^value.Int())
	}
}

// innermost goes through pointers and slices to what they hold.
func innermost(value reflect.Value) reflect.Value {
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Slice {
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		} else {
			value = value.Index(0)
		}
	}
	return value
}
