export enum Level {
  Low = 1,
  High,
}

export namespace area {
  export const square = (side: number) => side * side;
}
