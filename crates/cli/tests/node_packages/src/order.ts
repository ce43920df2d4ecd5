import { IsString, Min } from "class-validator";

export class Order {
  @IsString()
  id!: string;

  @Min(1)
  count!: number;
}
