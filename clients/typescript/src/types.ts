// The types of the schema language, each as a codec: what stands in the tables of fields of
// generated classes.
//
//     static readonly fields: readonly Field<BRole>[] = [
//       { id: 1, name: "gold", codec: types.long },
//       { id: 2, name: "bag", codec: types.map(types.int, types.bean(() => BItem)) },
//     ];

export * from "./bean_types.js";
export * from "./containers.js";
export * from "./scalars.js";
export * from "./vectors.js";
