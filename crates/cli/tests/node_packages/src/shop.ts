export function loud(target: object, key: string, own: PropertyDescriptor) {
  const plain = own.value;
  own.value = function (...given: unknown[]) {
    return `decorated ${plain.apply(this, given)}`;
  };
}

export class Shop {
  @loud
  open(what: string): string {
    return what;
  }
}
