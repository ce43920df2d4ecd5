/** Only for lists, which nobody has to check here. */
export async function $myArrayOperator(actual: unknown[], expected: number) {
  return actual.length === expected;
}

$myArrayOperator.expects = "array";

/** A path of its own: `scores.$within`. */
export function within(actual: number, [least, most]: [number, number]): boolean {
  return least <= actual && actual <= most;
}

within.virtual = false;
